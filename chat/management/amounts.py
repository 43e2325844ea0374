"""Numbers of things, as commands print them."""

from __future__ import annotations


def amount(number: int, noun: str) -> str:
    """Return a number with its noun, as "1 session" or "1,200 sessions"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
