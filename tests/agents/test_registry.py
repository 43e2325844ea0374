"""The models and agents from the configuration file and from the environment."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agents.config import DEFAULT_PROMPT, ProviderConfig
from agents.config_file import read_config
from agents.errors import ConfigError, ModelNotFound
from agents.providers.anthropic.provider import AnthropicProvider
from agents.providers.base import ListedModel
from agents.providers.demo.provider import DemoProvider
from agents.providers.openai.provider import OpenAIProvider
from agents.reasoning import ReasoningSupport
from agents.registry import ModelChoice, Registry, load, opening
from agents.toolbox.widgets import WIDGET_TOOLS
from agents.vendors import VENDORS

KEYS = {"ANTHROPIC_API_KEY": "a-key", "OPENAI_API_KEY": "o-key"}


@pytest.fixture
def file(tmp_path: Path) -> Callable[..., Path]:
    def write(text: str, name: str = "parley.toml") -> Path:
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


FULL = """
default_agent = "analyst"
default_model = "local/qwen3:8b"

[providers.local]
type = "openai"
base_url = "http://localhost:11434/v1"
context_window = 16000
options = { temperature = 0.2, top_p = 0.9 }

[providers.local.models."qwen3:8b"]
context_window = 32000
max_tokens = 4000
options = { temperature = 0.7 }

[providers.local.models."gpt-4o"]

[providers.claude]
type = "anthropic"
api_key_env = "TEAM_KEY"
models = ["claude-opus-5-5", "house-model"]

[agents.analyst]
title = "Analyst"
system_prompt = "Be exact."
tools = ["calculator"]
max_rounds = 7
prompts = ["What is new?", { title = "Research", text = "What is known about …?", icon = "search" }]

[agents.writer]
model = "claude/house-model"
tools = []
"""
FULL_ENV = {"TEAM_KEY": "secret"}


def test_registry_builds_an_agent_from_the_file(file: Callable[..., Path]) -> None:
    """Options and limits of a model take precedence over its provider's."""
    registry = load(file(FULL), FULL_ENV)
    agent = registry.build_agent(registry.preset("analyst"))
    assert (agent.name, agent.model, agent.provider.name) == ("analyst", "qwen3:8b", "local")
    assert (agent.system, agent.max_rounds, agent.max_tokens) == ("Be exact.", 7, 4000)
    assert [tool.name for tool in agent.tools] == ["calculator"]
    assert agent.options == {"temperature": 0.7, "top_p": 0.9}
    assert agent.context_window == 32000


def test_registry_builds_an_agent_as_the_session_has_it(file: Callable[..., Path]) -> None:
    """RUN-16: the agent has the session's model, prompt and tools, except tools that no longer exist."""
    registry = load(file(FULL), FULL_ENV)
    own: dict[str, Any] = {
        "provider": "local",
        "model": "gpt-4o",
        "system_prompt": "",
        "tools": ("gone", "current_time"),
    }
    agent = registry.build_agent(replace(registry.preset("writer"), **own))
    assert [tool.name for tool in agent.tools] == ["current_time"]
    assert (agent.name, agent.model, agent.provider.name, agent.system) == ("writer", "gpt-4o", "local", "")


def test_registry_makes_each_provider_once(file: Callable[..., Path]) -> None:
    registry = load(file(FULL), FULL_ENV)
    assert registry.provider("local") is registry.build_agent(registry.preset("analyst")).provider


@pytest.mark.parametrize(
    ("provider", "model", "expected"),
    [
        ("local", "qwen3:8b", 32_000),
        ("local", "gpt-4o", 16_000),
        ("claude", "claude-opus-5-5", 1_000_000),
        ("claude", "house-model", None),
        ("unknown", "claude-opus-5-5", 1_000_000),
    ],
)
def test_context_window_is_looked_up_from_near_to_far(
    file: Callable[..., Path], provider: str, model: str, expected: int | None
) -> None:
    """RUN-05: the order is the model's configuration, the provider's, the table, and unknown."""
    assert load(file(FULL), FULL_ENV).context_window(provider, model) == expected


async def test_context_window_of_the_server_counts_unless_one_is_configured(
    file: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """RUN-05: a server may read less than the table says, and states it in its list of models."""

    async def list_models(_provider: OpenAIProvider) -> dict[str, ListedModel]:
        return {"llama-3.1-8b": ListedModel(8192), "gpt-4o": ListedModel()}

    monkeypatch.setattr(OpenAIProvider, "list_models", list_models)
    local = {"type": "openai", "base_url": "http://x/v1"}
    text = json.dumps({"providers": {"p": local, "q": local | {"context_window": 4096}}})
    registry = load(file(text, "parley.json"), {})
    assert registry.context_window("p", "llama-3.1-8b") == 131_072
    found = [(each.provider, each.context_window) for each in await registry.models() if each.provider != "demo"]
    assert found == [("p", 8192), ("p", 128_000), ("q", 4096), ("q", 4096)]
    assert registry.build_agent(replace(registry.preset(), provider="p", model="llama-3.1-8b")).context_window == 8192


async def test_list_of_anthropic_counts_for_models_that_are_not_in_the_tables(
    file: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """RUN-05, RUN-16: a newer model has its window and its levels of effort. A stated window may need an opt-in."""
    stated = ListedModel(2_000_000, ReasoningSupport(efforts=("low", "high"), adaptive=True))

    async def list_models(_provider: AnthropicProvider) -> dict[str, ListedModel]:
        return dict.fromkeys(["claude-opus-9", "claude-sonnet-4-5", "house-model"], stated)

    monkeypatch.setattr(AnthropicProvider, "list_models", list_models)
    registry = load(file(json.dumps({"providers": {"p": {"type": "anthropic"}}}), "parley.json"), KEYS)
    assert registry.context_window("p", "claude-opus-9") == 200_000
    await registry.models()
    names = ("claude-opus-9", "claude-sonnet-4-5", "house-model")
    assert [registry.context_window("p", name) for name in names] == [2_000_000, 200_000, 2_000_000]
    known = [registry.reasoning_support("p", name) == stated.support for name in names]
    assert known == [True, False, True]
    assert (
        registry.build_agent(replace(registry.preset(), provider="p", model="claude-opus-9")).support == stated.support
    )


def test_first_preset_is_the_default_and_each_names_its_model(file: Callable[..., Path]) -> None:
    registry = load(file(FULL), FULL_ENV)
    presets = [registry.preset(name) for name in ("analyst", "writer")]
    assert [(one.name, one.title, one.provider, one.model) for one in presets] == [
        ("analyst", "Analyst", "local", "qwen3:8b"),
        ("writer", "writer", "claude", "house-model"),
    ]
    assert presets[0].prompts == ("What is new?", "What is known about …?")
    shown = [(each.heading, each.icon) for each in map(opening, presets[0].prompts)]
    assert shown == [("", "message-square"), ("Research", "search")]
    assert registry.default_agent == "analyst"
    assert registry.preset("gone").name == "analyst"


def test_same_configuration_as_json(file: Callable[..., Path]) -> None:
    text = json.dumps({"providers": {"p": {"type": "openai", "base_url": "http://x/v1", "models": ["m"]}}})
    assert load(file(text, "parley.json"), {}).known_models() == [
        ModelChoice("p", "m"),
        ModelChoice("demo", "demo", 32_000),
    ]


OPENAI = '[providers.x]\ntype = "openai"\nbase_url = "http://x"\n'


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('[providers.x]\ntype = "openapi"', f"providers.x.type: must be one of {', '.join(VENDORS)}, but is 'openapi'"),
        ("[providers.x]\nmodels = []", "providers.x.type: missing; add this setting"),
        ('[providers.x]\ntype = "demo"\nkey = "sk-1"', "providers.x.key: unknown setting"),
        ('[providers."a/b"]\ntype = "demo"', "providers.a/b: a name must have 1 to 80 letters"),
        (
            '[providers.x]\ntype = "openai"\nbase_url = "localhost:1"',
            "providers.x.base_url: must be a web address that begins with http:// or https://, but is 'localhost:1'",
        ),
        (
            '[providers.x]\ntype = "openai"\nbase_url = "http://010.0.0.1:8000/v1"',
            "providers.x.base_url: must have an IP address without leading zeros",
        ),
        ('[mcp.x]\nurl = "http://010.0.0.1/mcp"', "mcp.x: must have an IP address without leading zeros"),
        ('[providers.x]\ntype = "anthropic"', "providers.x.api_key_env: the environment variable ANTHROPIC_API_KEY is"),
        (
            '[providers.x]\ntype = "openai"\nbase_url = "http://x"\napi_key_env = "MY_KEY"',
            "providers.x.api_key_env: the environment variable MY_KEY is not set; set it",
        ),
        (
            '[providers.x]\ntype = "demo"\nmodels = "gpt-5"',
            'providers.x.models: must be a list of names, such as ["gpt-5"]',
        ),
        ('[providers.x]\ntype = "demo"\nmodels = [1]', "providers.x.models: must be a table"),
        (
            '[providers.demo]\ntype = "demo"\noptions = { speed = 1 }',
            "providers.demo.options.speed: the demo agent has",
        ),
        (
            '[agents.a]\ntools = ["shell"]',
            "agents.a.tools: there is no tool 'shell'; choose from current_time, calculator",
        ),
        ("[agents.a]\nmax_rounds = 0", "agents.a.max_rounds: must be 1 or more, but is 0"),
        (
            '[agents.a]\nmodel = "gpt"',
            "agents.a.model: no provider lists 'gpt'; choose from: demo/demo; or configure its provider, for example "
            "by the environment variable ANTHROPIC_API_KEY",
        ),
        (
            '[agents.a]\nmodel = "gpt"\n[providers.x]\ntype = "openai"\nbase_url = "http://x"\nmodels = ["m"]',
            "agents.a.model: no provider lists 'gpt'; choose from: x/m, demo/demo.",
        ),
        ('default_model = "demo/other"\n[providers.demo]\ntype = "demo"\nmodels = ["m"]', "default_model: no provider"),
        ('default_agent = "b"\n[agents.a]', "default_agent: there is no agent 'b'; choose from: a"),
        (
            '[providers.x]\ntype = "demo"\napi = "chat"',
            "providers.x.api: only providers of type openai can choose an API",
        ),
        (
            '[providers.x]\ntype = "openai"\napi = "soap"',
            "providers.x.api: must be one of 'responses' or 'chat'",
        ),
        (OPENAI + "options = { n = 2 }", "providers.x.options.n: Parley shows one answer per request; remove it"),
        (
            OPENAI + "models = { m = { options = { n = 2 } } }",
            "providers.x.models.m.options.n: Parley shows one answer",
        ),
        (
            OPENAI + 'models = { o3 = { reasoning_effort = "max" } }',
            "providers.x.models.o3.reasoning_effort: o3 does not support the level 'max'; choose from low, medium",
        ),
        (
            OPENAI + 'models = ["gpt-4o"]\n[agents.a]\nmodel = "x/gpt-4o"\nreasoning_effort = "low"',
            "agents.a.reasoning_effort: gpt-4o does not support the level 'low'; remove it",
        ),
        (
            OPENAI + 'models = ["o3"]\n[agents.a]\nmodel = "x/o3"\nthinking_budget = 4000',
            "agents.a.thinking_budget: o3 does not support a thinking budget; remove it",
        ),
        ("[agents.a]\nthinking_budget = 1", "agents.a.thinking_budget: must be 1024 or more"),
        ('[agents.a]\nallowed_hosts = ["https://a.example/"]', "agents.a.allowed_hosts.0: "),
        ("color = 1", "color: unknown setting"),
        ("a = [", "this is not valid TOML"),
    ],
)
def test_bad_configuration_names_file_key_and_remedy(file: Callable[..., Path], text: str, problem: str) -> None:
    path = file(text)
    with pytest.raises(ConfigError) as caught:
        load(path, {})
    assert str(caught.value).startswith(f"{path}: {problem}")


def test_byte_order_mark_is_ignored(tmp_path: Path) -> None:
    """Editors on Windows write one, which is not visible."""
    for name, text in (("parley.toml", 'default_agent = "a"\n[agents.a]'), ("parley.json", '{"agents": {"a": {}}}')):
        (tmp_path / name).write_text(text, encoding="utf-8-sig")
        assert load(tmp_path / name, {}).preset().name == "a"


WRONG_SHAPES = """
default_agent = 3
[providers.x]
type = "openai"
base_url = "x"
models = 5
timeout = "long"
[agents.x]
icon = "house"
tools = "calculator"
prompts = [{ title = "a" }, 5, "", { text = "b", icon = "house", more = 1 }]
memory = "maybe"
knowledge = [""]
[agents.x.approval]
ask = ["bad rule(", { rule = "(", approvals = 100 }, 4]
[prices."x"]
input = -1
output = "much"
"""
ICONS = (
    "'calculator', 'clock', 'code', 'file-text', 'globe', 'image', 'lightbulb', 'list-checks', 'message-square', "
    "'search', 'sparkles', 'square-pen', 'table', 'terminal', 'users', 'wrench'"
)
NO_RULE = "is not a rule. Use a tool's name, or one with a pattern, such as bash(ls *)"


def test_wrong_shapes_are_described_in_plain_words(file: Callable[..., Path]) -> None:
    """Each problem is described with its path in the file, without names of types, and with the valid choices."""
    path = file(WRONG_SHAPES)
    with pytest.raises(ConfigError) as caught:
        load(path, {})
    assert str(caught.value).replace(f"{path}: ", "").splitlines() == [
        "providers.x.base_url: must be a web address that begins with http:// or https://, but is 'x'.",
        "providers.x.timeout: must be a number, but is 'long'.",
        'providers.x.models: must be a table, such as { name = "value" }, but is 5.',
        f"agents.x.icon: must be one of {ICONS} or '', but is 'house'.",
        'agents.x.tools: must be a list, such as ["one", "two"], but is \'calculator\'.',
        "agents.x.prompts.0.text: missing; add this setting.",
        "agents.x.prompts.1: must be a string, but is 5.",
        f"agents.x.prompts.3.icon: must be one of {ICONS[:-10]} or 'wrench', but is 'house'.",
        "agents.x.prompts.3.more: unknown setting; remove it or correct its name.",
        f"agents.x.approval.ask.0: 'bad rule(' {NO_RULE}.",
        f"agents.x.approval.ask.1.rule: '(' {NO_RULE}.",
        "agents.x.approval.ask.1.approvals: must be 10 or less, but is 100.",
        "agents.x.approval.ask.2: must be a string, but is 4.",
        "agents.x.memory: must be true or false, but is 'maybe'.",
        "agents.x.knowledge.0: must have at least 1 character, but is ''.",
        "prices.x.input: must be 0 or more, but is -1.",
        "prices.x.output: must be a number, but is 'much'.",
        "default_agent: must be a string, but is 3.",
    ]


@pytest.mark.parametrize("key", ["sk-ant-api03-SECRET", "x" * 61 + "SECRET", "AIzaSECRETSECRETSECRETSECRETSECRETSECRE"])
def test_key_in_place_of_its_variable_is_not_repeated(file: Callable[..., Path], key: str) -> None:
    """The error is printed to logs, so it does not contain the key that was written as `api_key_env`."""
    path = file(
        f'[providers.x]\ntype = "anthropic"\napi_key_env = "{key}"\n[search]\ntype = "brave"\napi_key_env = "{key}"'
    )
    with pytest.raises(ConfigError, match="not the key itself") as caught:
        load(path, {})
    assert "SECRET" not in str(caught.value)
    assert str(caught.value).count("not the key itself") == 2


@pytest.mark.parametrize("name", ["openai-key", "openai.key", "KEY_" * 16])
def test_key_can_be_in_a_variable_with_any_name(file: Callable[..., Path], name: str) -> None:
    """Docker and Kubernetes can set such variables."""
    path = file(f'[providers.x]\ntype = "anthropic"\napi_key_env = "{name}"\nmodels = ["claude"]')
    assert load(path, {name: "a key"})


@pytest.mark.parametrize(
    ("provider", "api"),
    [
        ({}, "responses"),
        ({"base_url": "https://api.openai.com/v1/"}, "responses"),
        ({"base_url": "https://eu.api.openai.com/v1"}, "responses"),
        ({"base_url": "https://api.openai.com.evil.example/v1"}, "chat"),
        ({"base_url": "http://localhost:11434/v1"}, "chat"),
        ({"base_url": "http://localhost:11434/v1", "api": "responses"}, "responses"),
        ({"api": "chat"}, "chat"),
    ],
)
def test_openai_itself_is_asked_over_the_responses_api(provider: dict[str, str], api: str) -> None:
    """OpenAI gets the Responses API, and other servers Chat Completions, unless the configuration sets it."""
    assert ProviderConfig.model_validate({"type": "openai", **provider}).openai_api == api


def test_bad_configuration_tells_all_problems_and_no_secrets(file: Callable[..., Path]) -> None:
    with pytest.raises(ConfigError) as caught:
        load(file('[providers.x]\ntype = "openai"\napi_key = "sk-secret"\ntimeout = 0\nmax_retries = -1'), {})
    assert len(str(caught.value).splitlines()) == 3
    assert "sk-secret" not in str(caught.value)


def test_configuration_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"missing\.toml: No such file.*PARLEY_CONFIG"):
        load(tmp_path / "missing.toml", {})
    with pytest.raises(ConfigError, match="Is a directory"):
        load(tmp_path, {})
    (tmp_path / "x.json").write_bytes(b"\xff")
    with pytest.raises(ConfigError, match="not valid JSON"):
        load(tmp_path / "x.json", {})


@pytest.mark.parametrize(
    ("env", "providers", "start"),
    [
        ({}, ["demo"], ("demo", "demo")),
        ({"OPENAI_API_KEY": "  "}, ["demo"], ("demo", "demo")),
        ({"ANTHROPIC_API_KEY": "k"}, ["anthropic", "demo"], ("anthropic", VENDORS["anthropic"].models[0])),
        ({"OPENAI_API_KEY": "k"}, ["openai", "demo"], ("openai", VENDORS["openai"].models[0])),
        ({"OPENAI_BASE_URL": "http://localhost:1/v1"}, ["openai", "demo"], ("openai", "")),
        (KEYS, ["anthropic", "openai", "demo"], ("anthropic", VENDORS["anthropic"].models[0])),
    ],
)
def test_environment_alone_gives_a_useful_default(
    env: Mapping[str, str], providers: list[str], start: tuple[str, str]
) -> None:
    """A key or a base URL is enough. The demo agent stays selectable, and is never the default beside a real one."""
    registry = load(None, env)
    preset = registry.preset()
    assert list(read_config(None, env).providers) == providers
    assert (preset.provider, preset.model) == start
    assert ModelChoice("demo", "demo", 32_000) in registry.known_models()
    assert (preset.title, preset.system_prompt) == ("Assistant", DEFAULT_PROMPT)
    example = {"example__*", "bash", "write_file"} if providers == ["demo"] else set()
    own = {"current_time", "calculator", "web_fetch", *(tool.name for tool in WIDGET_TOOLS)}
    assert set(preset.tools) == own | example


@pytest.mark.parametrize(
    ("env", "shown"),
    [
        ({"HOST": "localhost"}, True),
        ({"HOST": "0.0.0.0"}, False),  # noqa: S104
        ({"PUBLIC_URL": "https://parley.example.com"}, False),
        ({"ALLOWED_HOSTS": "parley.lan"}, False),
    ],
)
def test_demo_agent_has_a_shell_on_this_machine_alone(env: Mapping[str, str], shown: bool) -> None:
    """The demo agent has a shell only on a local server. Elsewhere, users get no shell that an operator has not
    enabled."""
    assert ("bash" in load(None, env).preset().tools) is shown


def test_file_with_agents_only_takes_providers_from_the_environment(file: Callable[..., Path]) -> None:
    registry = load(file('[agents.poet]\nsystem_prompt = "Rhyme."'), {})
    assert registry.build_agent(registry.preset()).system == "Rhyme."
    assert isinstance(registry.build_agent(registry.preset()).provider, DemoProvider)


def test_bad_base_url_in_the_environment_is_reported() -> None:
    with pytest.raises(ConfigError, match="OPENAI_BASE_URL is not a web address: 'localhost:1'"):
        load(None, {"OPENAI_BASE_URL": "localhost:1"})


@pytest.mark.parametrize(
    ("provider", "model", "words"),
    [
        ("gone", "m", "“gone” isn’t configured"),
        ("gone", "", "“gone” isn’t configured"),
        ("demo", "gpt", "“demo” has no model “gpt” here. Choose one of: demo"),
        ("claude", "claude-1", "Choose one of: claude-opus-5-5, house-model"),
    ],
)
def test_unknown_model_or_provider_is_refused_with_a_reason(
    file: Callable[..., Path], provider: str, model: str, words: str
) -> None:
    registry = load(file(FULL), FULL_ENV)
    with pytest.raises(ModelNotFound, match=words):
        registry.build_agent(replace(registry.preset(), provider=provider, model=model))
    assert not registry.offers(provider, model)


@pytest.mark.parametrize(
    ("provider", "model", "expected"),
    [
        ("", "", ("local", "qwen3:8b")),
        ("claude", "", ("claude", "claude-opus-5-5")),
        ("", "house-model", ("claude", "house-model")),
        ("", "claude/house-model", ("claude", "house-model")),
        ("", "demo/demo", ("demo", "demo")),
    ],
)
def test_model_is_found_from_what_is_given(
    file: Callable[..., Path], provider: str, model: str, expected: tuple[str, str]
) -> None:
    assert load(file(FULL), FULL_ENV).resolve(provider, model) == expected


def test_model_name_with_a_slash_is_not_taken_for_a_provider() -> None:
    registry = load(None, {"OPENAI_BASE_URL": "https://router.example/v1"})
    assert registry.resolve("", "meta/llama-4") == ("openai", "meta/llama-4")
    assert registry.offers("openai", "meta/llama-4")


def test_demo_pace_is_configured(file: Callable[..., Path]) -> None:
    registry = load(file('[providers.demo]\ntype = "demo"\noptions = { tokens_per_second = 0 }'), {})
    assert registry.build_agent(registry.preset()).provider.name == "demo"


async def test_server_that_has_not_told_its_models_is_named(file: Callable[..., Path]) -> None:
    registry = load(None, {"OPENAI_BASE_URL": "http://localhost:1/v1"})
    with pytest.raises(
        ModelNotFound, match=r"Couldn’t get the list of models from “openai”\. It hasn’t been queried yet"
    ):
        registry.build_agent(registry.preset())


async def test_registry_lists_all_providers_and_closes() -> None:
    registry = load(None, {})
    assert isinstance(registry, Registry)
    assert await registry.models() == [ModelChoice("demo", "demo", 32_000)]
    await registry.close()


def test_provider_is_made_with_what_the_file_says(file: Callable[..., Path]) -> None:
    text = """
    [providers.local]
    type = "openai"
    base_url = "http://localhost:1/v1"
    max_retries = 5
    timeout = 7
    [providers.claude]
    type = "anthropic"
    api_key_env = "TEAM_KEY"
    """
    registry = load(file(text), FULL_ENV)
    local, claude = registry.provider("local"), registry.provider("claude")
    assert isinstance(local, OpenAIProvider)
    assert (local.endpoint.url, local.endpoint.key, local.max_retries) == ("http://localhost:1/v1", "", 5)
    assert (local.timeout, local.first_timeout) == (7, 7)
    assert isinstance(claude, AnthropicProvider)
    assert (claude.name, claude.endpoint.key, claude.endpoint.key_hint) == ("claude", "secret", "TEAM_KEY")
