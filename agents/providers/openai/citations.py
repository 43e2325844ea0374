"""The pages that OpenAI's models cite, from the `url_citation` annotations of both APIs."""

from __future__ import annotations

from collections.abc import Iterator

from agents.messages import Source
from agents.sources import cited_source


def cited_by(annotations: object) -> Iterator[Source]:
    """Yield the pages that annotations of a text name. Chat Completions has their fields in a nested object."""
    for each in annotations if isinstance(annotations, list) else ():
        if isinstance(each, dict) and each.get("type") == "url_citation":
            inner = each.get("url_citation")
            fields = inner if isinstance(inner, dict) else each
            if source := cited_source(fields.get("title"), fields.get("url")):
                yield source
