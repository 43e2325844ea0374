"""The cost of responses by the configured prices."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from agents.config_file import read_config
from agents.errors import ConfigError
from agents.prices import Money, Price, Tokens, cost_of, total_of
from agents.registry import Registry

PRICE = Price(input=Decimal(3), output=Decimal(15), cache_read=Decimal("0.3"), cache_write=Decimal("3.75"))


def dollars(amount: str) -> Money:
    return Money(Decimal(amount), "USD")


@pytest.mark.parametrize(
    ("tokens", "price", "cost"),
    [
        (Tokens(1_000_000, 100_000), PRICE, dollars("4.5")),
        (Tokens(1_000_000, 0, 900_000, 50_000), PRICE, dollars("0.6075")),
        (Tokens(1_000_000, 0, 900_000), Price(input=Decimal(2), output=Decimal(8)), dollars("2")),
        (Tokens(10, 0, 20), Price(input=Decimal(1), output=Decimal(1), cache_read=Decimal(0)), dollars("0")),
        (Tokens(1, 1), None, None),
        (Tokens(None, 1), PRICE, None),
        (Tokens(1, None), PRICE, None),
    ],
)
def test_cost_is_of_each_kind_of_tokens(tokens: Tokens, price: Price | None, cost: Money | None) -> None:
    """MSG-06: each kind of token has its price. Without a price or a count the cost is unknown, not 0."""
    assert cost_of(tokens, price) == cost


def test_costs_add_up_by_currency_and_not_without_one_of_them() -> None:
    euro = Money(Decimal(2), "EUR")
    assert total_of([dollars("1"), euro, dollars("0.5")]) == (dollars("1.5"), euro)
    assert total_of([dollars("1"), None]) == ()
    assert total_of([]) == ()


def registry(folder: Path, text: str) -> Registry:
    file = folder / "parley.toml"
    file.write_text(text)
    return Registry(read_config(file, {}), {})


def test_prices_of_models_with_a_path_are_found(tmp_path: Path) -> None:
    """Routers' names contain slashes: a price by the whole name precedes one by its last part."""
    prices = registry(
        tmp_path,
        """
        [prices."meta/llama-*"]
        input = 3
        output = 15
        [prices."llama-*"]
        input = 1
        output = 2
        """,
    ).price
    found = [prices("router", "meta/llama-3"), prices("router", "other/llama-3"), prices("router", "meta/other")]
    assert [price and str(price.input) for price in found] == ["3", "1", None]


def test_prices_are_found_by_model_provider_and_pattern(tmp_path: Path) -> None:
    prices = registry(
        tmp_path,
        """
        [prices."claude-*"]
        input = 3
        output = 15
        [prices."mine/claude-small"]
        input = 0.5
        output = 1
        currency = "EUR"
        """,
    ).price
    found = [prices("a", "Claude-Big"), prices("mine", "claude-small"), prices("a", "org/claude-x"), prices("a", "gpt")]
    assert [price and (str(price.input), price.currency) for price in found] == [
        ("3", "USD"),
        ("0.5", "EUR"),
        ("3", "USD"),
        None,
    ]


@pytest.mark.parametrize("more", ["input = -1\noutput = 1", "input = 1", 'input = 1\noutput = 1\ncurrency = "euro"'])
def test_a_wrong_price_is_named(tmp_path: Path, more: str) -> None:
    with pytest.raises(ConfigError, match=r"prices\.m"):
        registry(tmp_path, f"[prices.m]\n{more}\n")
