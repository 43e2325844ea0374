"""Compare names that two places must agree on. A failure says what to do, with one sentence for each name."""

from __future__ import annotations

from collections.abc import Iterable


def agree(listed: Iterable[object], actual: Iterable[object], *, missing: str, extra: str) -> None:
    """Fail unless both have the same names.

    `missing` is the sentence about an actual name that is not listed, `extra` that about a listed one that does not
    exist; "{}" in them stands for the name.
    """
    __tracebackhide__ = True
    known, there = {str(each) for each in listed}, {str(each) for each in actual}
    problems = [missing.format(name) for name in sorted(there - known)]
    problems += [extra.format(name) for name in sorted(known - there)]
    assert not problems, "\n".join(["", *problems])
