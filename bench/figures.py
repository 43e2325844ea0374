"""The output of the benchmark: percentiles and tables."""

from __future__ import annotations

from collections.abc import Sequence

from bench import machine


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value that this share (0 to 1) of all values does not exceed, or NaN if there are no values."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")


def ms(seconds: float) -> str:
    return f"{seconds * 1000:.1f}" if seconds < 0.1 else f"{seconds * 1000:.0f}"


def both(values: Sequence[float]) -> list[str]:
    """Return the median and the 99th percentile in milliseconds, as text. The values are in seconds."""
    return [ms(percentile(values, 0.5)), ms(percentile(values, 0.99))]


def print_table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a Markdown table for docs/performance.md, with the load of the machine in its title."""
    print(f"\n{title} ({machine.state()})\n", flush=True)
    for row in (head, ["---"] * len(head), *rows):
        print("| " + " | ".join(row) + " |", flush=True)
