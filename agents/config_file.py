"""The reader of the configuration: a TOML or JSON file, completed from the environment and by defaults."""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from agents.added_tools import NO_ADDED_TOOLS, AddedTools
from agents.config import DEFAULT_AGENT, DEMO_PROMPTS, AgentConfig, Config, ProviderConfig, problems
from agents.config_errors import describe
from agents.errors import ConfigError
from agents.mcp.config import SEPARATOR, ServerConfig
from agents.toolbox import SEARCH
from agents.vendors import VENDORS

# The tools by which the demo agent shows the sandbox. It runs only commands that users write to it and then approve.
DEMO_TOOLS = ("bash", "write_file")
LOCAL_HOSTS = ("", "127.0.0.1", "::1", "localhost")
EXAMPLE = {
    "example": ServerConfig(
        command=(sys.executable, "-I", str(Path(__file__).parent / "mcp/example_server.py")), sandbox=False
    )
}


def read_config(path: Path | None, env: Mapping[str, str], added: AddedTools = NO_ADDED_TOOLS) -> Config:
    """Read and check the configuration. Raise ConfigError, which lists all problems with the file and their keys."""
    config = _parse(path) if path else Config()
    providers = config.providers or _from_environment(env)
    # If nothing is configured, the demo agent also shows an MCP server.
    example = {} if config.agents or config.mcp or not _is_demo(providers) else EXAMPLE
    agents = _with_search(config.agents or {DEFAULT_AGENT: _assistant(providers)}, config)
    if example and _is_local(env):
        agents = _with_tools(agents, DEMO_TOOLS)
    complete = config.model_copy(
        update={
            # The demo agent comes after all other providers, unless the configuration has a provider of this name.
            "providers": {**providers, "demo": providers.get("demo", ProviderConfig(type="demo"))},
            "agents": _with_tools(agents, [f"{server}{SEPARATOR}*" for server in example]),
            "mcp": config.mcp or example,
        }
    )
    found = list(problems(complete, env, added))
    if found:
        raise _refusal(path, found)
    return complete


def _assistant(providers: Mapping[str, ProviderConfig]) -> AgentConfig:
    """Return the default preset, for operators who configured no agent.

    If only the demo agent can answer, the preset offers the prompts that the demo agent understands.
    """
    return AgentConfig(title="Assistant", prompts=DEMO_PROMPTS if _is_demo(providers) else ())


def _is_demo(providers: Mapping[str, ProviderConfig]) -> bool:
    return all(provider.type == "demo" for provider in providers.values())


def _is_local(env: Mapping[str, str]) -> bool:
    """Return whether, by its environment, Parley can be reached only from this machine."""
    return _set(env, "HOST") in LOCAL_HOSTS and not (_set(env, "PUBLIC_URL") or _set(env, "ALLOWED_HOSTS"))


def _with_tools(agents: Mapping[str, AgentConfig], names: Iterable[str]) -> dict[str, AgentConfig]:
    more = tuple(names)
    return {name: agent.model_copy(update={"tools": (*agent.tools, *more)}) for name, agent in agents.items()}


def _with_search(agents: Mapping[str, AgentConfig], config: Config) -> dict[str, AgentConfig]:
    """Add web search, if it is configured, to the agents that do not list their tools."""
    return {
        name: agent.model_copy(update={"tools": (*agent.tools, SEARCH)})
        if config.search and "tools" not in agent.model_fields_set
        else agent
        for name, agent in agents.items()
    }


def _from_environment(env: Mapping[str, str]) -> dict[str, ProviderConfig]:
    """Return a provider for each vendor whose key is set, or whose base URL is set and enough (docs/models.md)."""
    return {
        name: _provider(name, env, vendor.url_env)
        for name, vendor in VENDORS.items()
        if _set(env, vendor.key_env) or (vendor.works_without_key and _set(env, vendor.url_env))
    }


def _provider(kind: str, env: Mapping[str, str], url_name: str) -> ProviderConfig:
    try:
        return ProviderConfig.model_validate({"type": kind, "base_url": _set(env, url_name) or None})
    except ValidationError as error:
        raise ConfigError(
            f"The environment variable {url_name} is not a web address: {env[url_name]!r}. "
            "Set it to one that begins with http:// or https://, or unset it."
        ) from error


def _set(env: Mapping[str, str], name: str) -> str:
    return env.get(name, "").strip()


def _parse(path: Path) -> Config:
    document = _raw(path)
    try:
        return Config.model_validate(document)
    except ValidationError as error:
        raise _refusal(path, [describe(dict(one), document) for one in error.errors(include_url=False)]) from error


def _raw(path: Path) -> Any:
    try:
        text = path.read_text(encoding="utf-8-sig")  # editors on Windows write a byte order mark
        return json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ConfigError(f"{path}: {reason}. Set PARLEY_CONFIG to a readable file, or unset it.") from error
    except ValueError as error:  # both parsers and the decoder raise it
        kind = "JSON" if path.suffix == ".json" else "TOML"
        raise ConfigError(f"{path}: this is not valid {kind}: {error}. Correct it there.") from error


def _refusal(path: Path | None, found: Iterable[str]) -> ConfigError:
    return ConfigError("\n".join(f"{path or 'environment'}: {problem}." for problem in found))
