"""Queries only read rows; services write them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import chat.queries

MODULES = sorted(Path(chat.queries.__path__[0]).glob("*.py"))
WRITING = re.compile(
    r"\.(?:a?save|(?:bulk_|get_or_|update_or_)?create|bulk_update|delete|select_for_update)\("
    r"|objects.*\.update\("
)


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.stem)
def test_queries_only_read(module: Path) -> None:
    writing = [line.strip() for line in module.read_text().splitlines() if WRITING.search(line)]
    assert not writing
