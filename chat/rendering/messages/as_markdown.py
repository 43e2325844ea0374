"""A message as Markdown, for copying: its exact text and links to its files, or a tool call with its result."""

from __future__ import annotations

import json
import re

from django.urls import reverse

from agents.messages import unreadable_text
from chat.projections.fences import fenced
from chat.rendering.text.json_text import indent_json
from chat.snapshots import AttachmentSnapshot, MessageSnapshot, ToolSnapshot


def as_markdown(message: MessageSnapshot, site: str = "") -> str:
    """Return a message as Markdown (MSG-12). If `site` is given, links to its files follow the text."""
    if message.tool:
        return _tool(message.tool)
    files = "\n".join(f"- {_link(file, site)}" for file in message.attachments if site)
    return "\n\n".join(part for part in (message.text, files) if part)


def _link(file: AttachmentSnapshot, site: str) -> str:
    name = re.sub(r"([\\\[\]`*_<>&!])", r"\\\1", file.name)
    return f"[{name}]({site}{reverse('attachment', args=[file.id])})"


def _tool(tool: ToolSnapshot) -> str:
    parts = [f"**{tool.name}**"]
    unreadable = unreadable_text(tool.arguments)
    if unreadable is not None:
        parts.append(fenced(unreadable, ""))
    elif tool.arguments:
        parts.append(fenced(indent_json(json.dumps(tool.arguments, ensure_ascii=False, default=str)), "json"))
    if tool.result:
        result = indent_json(tool.result)
        parts.append(fenced(result.removesuffix("\n"), "json" if result != tool.result else ""))
    return "\n\n".join(parts)
