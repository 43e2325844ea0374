"""The lookup of a model's context window (RUN-05)."""

from __future__ import annotations

from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.model_facts import CONTEXT_WINDOWS, context_window

TABLE = {"alpha": 1, "alpha-*": 2, "alpha-big-*": 3, "*": 9, "exact": 4, "exac*": 5}


@pytest.mark.parametrize(
    ("model", "window"),
    [("alpha", 1), ("alpha-1", 2), ("alpha-big-1", 3), ("alpha-big", 2), ("exact", 4), ("exacta", 5), ("x", 9)],
)
def test_exact_name_wins_then_the_longest_pattern(model: str, window: int) -> None:
    """An exact model name takes precedence over patterns, and longer patterns over shorter ones (RUN-05)."""
    assert context_window(model, table=TABLE) == window


def test_configuration_wins_from_near_to_far() -> None:
    """RUN-05: the order is the model's configuration, the provider's, the list of the server, and the table."""
    assert context_window("gpt-4o", 10, 20) == 10
    assert context_window("gpt-4o", None, 20, 30) == 20
    assert context_window("gpt-4o", None, None, 30) == 30
    assert context_window("gpt-4o") == 128_000
    assert context_window("unheard-of") is None


@pytest.mark.parametrize(
    ("model", "window"),
    [
        ("claude-opus-4-6", 1_000_000),
        ("claude-sonnet-5-5", 1_000_000),
        ("claude-sonnet-4-5-20250929", 200_000),
        ("claude-haiku-4-5", 200_000),
        ("claude-3-5-sonnet-20241022", 200_000),
        ("gpt-4", 8_192),
        ("gpt-4-turbo-2024-04-09", 128_000),
        ("gpt-4o-mini", 128_000),
        ("gpt-4.1-nano", 1_047_576),
        ("gpt-5", 400_000),
        ("gpt-5-chat-latest", 128_000),
        ("gpt-5.4", 1_050_000),
        ("gpt-5.4-mini", 400_000),
        ("gpt-5.6-luna", 1_050_000),
        ("gpt-5.4-pro", 1_050_000),
        ("gpt-6-astra", 1_050_000),
        ("gpt-6.1-terra", 1_050_000),
        ("gpt-6.2-sol", 1_050_000),
        ("gpt-4-32k-0613", 32_768),
        ("claude-mythos-5-2", 1_000_000),
        ("claude-haiku-5-5", 1_000_000),
        ("o1-mini", 128_000),
        ("o3-mini", 200_000),
        ("gemini-2.5-pro", 1_048_576),
        ("openai/gpt-4o", 128_000),
        ("anthropic/claude-sonnet-5", 1_000_000),
        ("meta-llama/Llama-3.3-70B-Instruct", 131_072),
        ("Qwen/Qwen2.5-72B-Instruct", 131_072),
        ("deepseek-chat", 131_072),
        ("demo", 32_000),
    ],
)
def test_known_models(model: str, window: int) -> None:
    """The built-in table has the context windows of known models (RUN-05)."""
    assert context_window(model) == window


names = st.text("ab-", max_size=6)
patterns = st.text("ab-*", min_size=1, max_size=6)


@given(names, st.dictionaries(patterns, st.integers(1)))
def test_table_answer_is_always_the_most_specific(model: str, table: dict[str, int]) -> None:
    """For any set of patterns, the most specific match is used (RUN-05)."""
    matching = [pattern for pattern in table if fnmatchcase(model, pattern)]
    found = context_window(model, table=table)
    if model in table:
        assert found == table[model]
    elif matching:
        longest = max(map(len, matching))
        assert found in [table[pattern] for pattern in matching if len(pattern) == longest]
    else:
        assert found is None


def test_table_is_written_as_it_is_looked_up() -> None:
    """Names are compared in lower case."""
    assert all(pattern == pattern.lower() for pattern in CONTEXT_WINDOWS)
