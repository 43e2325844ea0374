"""Reports of ChatGPT's Deep Research. They are only in the state of the widget that shows them."""

from __future__ import annotations

import json
from collections.abc import Sequence

from agents.messages import Json
from chat.transfer.formats.parsed import as_dict, as_list, as_text


def with_reports(messages: Sequence[Json]) -> list[Json]:
    """Return the messages of a path with each report as an answer after the last message with its widget.

    A widget is stored several times while its report is written, so only its last state is used.
    """
    present = {as_text(message.get("id")) for message in messages if _has_text(message)} - {""}
    added = list[Json]()
    for place in range(len(messages) - 1, -1, -1):
        report = _report(messages[place])
        name = as_text(report.get("id"))
        if _has_text(report) and name not in present:
            present |= {name} - {""}
            added.append(report)
        added.append(messages[place])
    return added[::-1]


def _report(message: Json) -> Json:
    """Return the report in a tool's message as an answer with its sources, or an empty object."""
    if as_dict(message.get("author")).get("role") != "tool":
        return {}
    widget = as_dict(as_dict(message.get("metadata")).get("chatgpt_sdk"))
    report = as_dict(_parsed(as_text(widget.get("widget_state"))).get("report_message"))
    metadata = as_dict(report.get("metadata"))
    shown = {key: value for key, value in metadata.items() if key != "is_visually_hidden_from_conversation"}
    return {
        "id": report.get("id"),
        "author": {"role": "assistant"},
        "recipient": "all",
        "content": as_dict(report.get("content")),
        "metadata": shown,
        "create_time": report.get("create_time") or message.get("create_time"),
    }


def _has_text(message: Json) -> bool:
    return any(as_list(as_dict(message.get("content")).get("parts")))


def _parsed(text: str) -> Json:
    try:
        return as_dict(json.loads(text))
    except (ValueError, RecursionError):
        return {}
