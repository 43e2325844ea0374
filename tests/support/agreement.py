"""A check that two lists have the same names. A failure shows one sentence per name about what to do."""

from __future__ import annotations

from collections.abc import Iterable


def agree(listed: Iterable[object], actual: Iterable[object], *, missing: str, extra: str) -> None:
    """Fail unless both have the same names.

    `missing` is the sentence for an actual name that is not listed, and `extra` for a listed name that does not exist.
    Both contain "{}" for the name.
    """
    __tracebackhide__ = True
    known, there = {str(each) for each in listed}, {str(each) for each in actual}
    problems = [missing.format(name) for name in sorted(there - known)]
    problems += [extra.format(name) for name in sorted(known - there)]
    assert not problems, "\n".join(["", *problems])
