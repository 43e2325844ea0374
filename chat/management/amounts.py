"""Numbers with nouns, for the output of commands."""

from __future__ import annotations


def amount(number: int, noun: str) -> str:
    """Return a number with its noun, such as "1 session" or "1,200 sessions"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
