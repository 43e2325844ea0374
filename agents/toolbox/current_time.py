"""The tool that returns the current date and time in any time zone."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from zoneinfo import ZoneInfo, available_timezones

from pydantic import Field

from agents.errors import ToolError
from agents.i18n import gettext as _
from agents.tools import tool


@tool(about=_("Tells the date and the time in any time zone"))
def current_time(
    timezone: Annotated[str, Field(description="IANA time zone, such as Europe/Berlin or Asia/Shanghai")] = "UTC",
) -> str:
    """Tell the current date, weekday and time in a time zone."""
    now = datetime.now(_zone(timezone))
    return f"{now:%A}, {now.isoformat(sep=' ', timespec='seconds')} ({timezone})"


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:  # raised for unknown names, malformed names, and folders
        wanted = name.strip().replace(" ", "_").lower()
        similar = sorted(zone for zone in available_timezones() if wanted and wanted in zone.lower())[:5]
        hint = f"Did you mean {', '.join(similar)}?" if similar else "Use an IANA name such as Europe/Berlin."
        raise ToolError(f"There is no time zone {name!r}. {hint}") from error
