"""Attachments in the model's context: a label, then the file itself or its text."""

from __future__ import annotations

from typing import Literal

from agents.messages import File, Part, Text
from chat.models import Attachment
from chat.projections.fences import fenced

NO_IMAGES = "this model takes no images"
NO_TEXT = "no text could be read from it"
LOST = "the file is lost"
TOO_MUCH = "with newer files, it is too large for one request"
TOO_MANY_PAGES = "it has more than {most} pages"
TOO_MANY_MEDIA = "a request can have {most} images and pages, which newer files use up"


def as_text(attachment: Attachment, why: str = "") -> tuple[Part, ...]:
    """Return the text of a file, or if it has none, a label. `why` is the reason why the file itself is not sent."""
    if attachment.text:
        label = _label(attachment, f"only its text: {why}" if why else "")
        return (Text(f"{label}\n{fenced(attachment.text)}", foreign=True),)
    is_image = attachment.kind == Attachment.Kind.IMAGE
    return (Text(_label(attachment, f"not shown: {why or (NO_IMAGES if is_image else NO_TEXT)}")),)


def as_file(attachment: Attachment, media_type: str, data: str) -> tuple[Part, ...]:
    """Return the file itself with its label. `data` is base64."""
    kind: Literal["image", "pdf"] = "image" if attachment.kind == Attachment.Kind.IMAGE else "pdf"
    return (Text(_label(attachment)), File(kind, attachment.name, media_type, data, _measure(attachment)))


def _label(attachment: Attachment, *facts: str) -> str:
    kind = {"image": "Image", "pdf": "PDF"}.get(attachment.kind, "File")
    name = " ".join(attachment.name.replace("[", "(").replace("]", ")").split())
    return f"[{', '.join(fact for fact in (f'{kind} {name}', _measure(attachment), *facts) if fact)}]"


def _measure(attachment: Attachment) -> str:
    if attachment.width and attachment.height:
        return f"{attachment.width}×{attachment.height}"
    if attachment.pages:
        return "1 page" if attachment.pages == 1 else f"{attachment.pages} pages"
    return ""
