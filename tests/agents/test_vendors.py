"""Descriptions of vendors, and everything that is derived from them."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from agents.config import ProviderConfig
from agents.errors import ConfigError
from agents.providers.base import Provider
from agents.providers.demo.provider import DemoProvider
from agents.providers.forms import FORMS, Form, form_of
from agents.registry import load
from agents.vendors import VENDORS, Vendor
from tests.support.agreement import agree


class OwnProvider(DemoProvider):
    """An adapter that an operator has added."""

    form = "anthropic"


def make_own(name: str, key: str, config: ProviderConfig) -> Provider:
    return OwnProvider(f"{name} with {key} at {config.base_url}")


OWN = Vendor(make=make_own, key_env="OWN_KEY", url_env="OWN_URL", models=("own-large", "own-small"))


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(VENDORS, "own", OWN)


@pytest.mark.usefixtures("own")
def test_described_vendor_can_be_configured(tmp_path: Path) -> None:
    """The description is enough for a provider, its models and its agents (RUN-05)."""
    path = tmp_path / "parley.toml"
    path.write_text('[providers.mine]\ntype = "own"\n[agents.helper]\nmodel = "mine/own-small"\n')
    registry = load(path, {"OWN_KEY": "secret"})
    provider = registry.provider("mine")
    assert provider.name == "mine with secret at None"
    assert form_of(provider, "own-small") == "anthropic"
    assert [each.model for each in registry.known_models() if each.provider == "mine"] == ["own-large", "own-small"]
    with pytest.raises(ConfigError, match="the environment variable OWN_KEY is not set"):
        load(path, {})


@pytest.mark.usefixtures("own")
def test_key_of_a_described_vendor_is_enough() -> None:
    registry = load(None, {"OWN_KEY": "secret", "OWN_URL": "https://own.example/v1"})
    assert registry.provider("own").name == "own with secret at https://own.example/v1"
    with pytest.raises(ConfigError, match="OWN_URL is not a web address"):
        load(None, {"OWN_KEY": "secret", "OWN_URL": "own.example"})
    assert not load(None, {"OWN_URL": "https://own.example/v1"}).has_models()


def test_unknown_type_names_the_vendors(tmp_path: Path) -> None:
    path = tmp_path / "parley.toml"
    path.write_text('[providers.mine]\ntype = "other"\n')
    with pytest.raises(ConfigError) as refused:
        load(path, {})
    assert f"providers.mine.type: must be one of {', '.join(VENDORS)}, but is 'other'" in str(refused.value)


def test_each_vendor_has_a_form_that_clients_can_name() -> None:
    """Each vendor's form is one that `?form=` of the REST API accepts."""
    agree(
        get_args(Form),
        FORMS,
        missing='Add "{}" to Form in agents/providers/forms.py.',
        extra='Add "{}" to FORMS in agents/providers/forms.py.',
    )
    for name, vendor in VENDORS.items():
        provider = vendor.make(name, "key", ProviderConfig(type=name))
        form = form_of(provider, "some-model")
        assert form in FORMS, f'The adapter of {name} names the form "{form}": add it to agents/providers/forms.py.'
