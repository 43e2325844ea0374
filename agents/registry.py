"""The configured providers, models and agents of this process."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agents import model_facts
from agents.added_tools import NO_ADDED_TOOLS, AddedTools
from agents.approval import NO_RULES, Rules
from agents.config import Config, PromptConfig, PromptIcon, is_known, split_model
from agents.config_file import read_config
from agents.discovery import Listing
from agents.errors import ModelNotFound
from agents.i18n import TranslatableText
from agents.i18n import gettext as _
from agents.loop import Agent
from agents.mcp.config import SEPARATOR, AddedServer, server_of
from agents.mcp.pool import SandboxOf, Servers
from agents.model_table import find_fact
from agents.prices import Price
from agents.providers.base import ListedModel, Provider
from agents.reasoning import NO_REASONING, UNCHOSEN, Reasoning, ReasoningSupport
from agents.toolbox import SEARCH, TOOLBOX, available
from agents.toolbox.web_search import make_web_search
from agents.tools import Tool


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A model that a session may use. `model` is "" until a server has listed its models."""

    provider: str
    model: str
    context_window: int | None = None


class Prompt(str):
    """The text of an opening prompt, with the heading and icon that the home page shows beside it."""

    heading: str  # not `title`, which each str has
    icon: PromptIcon

    def __new__(cls, text: str, heading: str = "", icon: PromptIcon = "message-square") -> Prompt:
        prompt = super().__new__(cls, text)
        prompt.heading = heading
        prompt.icon = icon
        return prompt

    def to_json(self) -> str | dict[str, str]:
        """Return the form that `opening` reads: the text, or an object if the prompt has a heading or an icon."""
        if not self.heading and self.icon == Prompt("").icon:
            return str(self)
        return {"text": str(self), "title": self.heading, "icon": self.icon}


def opening(prompt: object) -> Prompt:
    """Return a configured or stored prompt as a Prompt. Raise ValueError if it is invalid."""
    if isinstance(prompt, dict):
        prompt = PromptConfig.model_validate(prompt)
    if isinstance(prompt, PromptConfig):
        return Prompt(prompt.text, prompt.title, prompt.icon)
    if not isinstance(prompt, str):
        raise ValueError(f"{prompt!r} is not a prompt")  # the same type of error as for an invalid object
    return prompt if isinstance(prompt, Prompt) else Prompt(prompt)


@dataclass(frozen=True, slots=True)
class AgentPreset:
    """The settings with which a new session starts. `provider` and `model` are the current ones, "" if unknown yet."""

    name: str
    title: str
    provider: str
    model: str
    system_prompt: str
    tools: tuple[str, ...]
    max_rounds: int
    prompts: tuple[str, ...]
    reasoning: Reasoning = UNCHOSEN
    allowed_hosts: tuple[str, ...] = ()
    rules: Rules = NO_RULES
    # The percentage of the context window at which a session summarizes earlier messages; 0: only when a user asks.
    compact_at: int = 0
    # Whether the agent gets the notes that users have accepted in earlier sessions.
    memory: bool = True
    # The files of a session's workspace that the agent uses: ids, and names or patterns of names such as `*`.
    knowledge: tuple[str, ...] = ()
    # Whether the conversation so far was imported from a file.
    is_imported: bool = False
    # MCP servers that are not in the configuration file.
    servers: tuple[AddedServer, ...] = field(default=(), compare=False)
    # The icon beside the agent's messages and in lists; "" for the agent's initials.
    icon: str = ""


def load(
    path: Path | None, env: Mapping[str, str], sandbox_of: SandboxOf | None = None, added: AddedTools = NO_ADDED_TOOLS
) -> Registry:
    """Read the configuration file, or make a default configuration from the environment. Raise ConfigError.

    MCP servers that are programs run in the sandboxes that `sandbox_of` returns. `added` are tools of the operator.
    """
    return Registry(read_config(path, env, added), env, sandbox_of=sandbox_of, added=added)


class Registry:
    """The registry of a process. Synchronous methods may be called from any thread and use no network."""

    def __init__(
        self,
        config: Config,
        env: Mapping[str, str],
        clock: Callable[[], float] = time.monotonic,
        *,
        sandbox_of: SandboxOf | None = None,
        added: AddedTools = NO_ADDED_TOOLS,
    ) -> None:
        self._config = config
        self._added = added
        self.servers = Servers(config.mcp, env, sandbox_of)
        self._keys = {name: env.get(one.key_name, "").strip() for name, one in config.providers.items()}
        search = config.search
        self._search = make_web_search(search, env.get(search.key_name, "").strip()) if search else None
        self._providers: dict[str, Provider] = {}
        self._making = threading.Lock()
        self._listings = {name: self._listing(name, clock) for name in config.providers}

    # Agents

    @property
    def default_agent(self) -> str:
        return self._config.default_agent or next(iter(self._config.agents))

    def presets(self) -> list[AgentPreset]:
        """Return all presets, in the order of the configuration."""
        return [self.preset(name) for name in self._config.agents]

    def preset(self, name: str = "") -> AgentPreset:
        """Return the preset of this name, or the default preset if the name is not configured."""
        chosen = name if name in self._config.agents else self.default_agent
        agent = self._config.agents[chosen]
        choice = self.choice(agent.model)
        return AgentPreset(
            name=chosen,
            title=agent.title or chosen,
            provider=choice.provider,
            model=choice.model,
            system_prompt=agent.system_prompt,
            tools=agent.tools,
            max_rounds=agent.max_rounds,
            prompts=tuple(map(opening, agent.prompts)),
            reasoning=Reasoning(agent.reasoning_effort or "", agent.thinking_budget),
            allowed_hosts=agent.allowed_hosts,
            compact_at=agent.compact_at,
            memory=agent.memory,
            knowledge=agent.knowledge,
            rules=agent.approval.rules(),
            icon=agent.icon,
        )

    def build_agent(self, preset: AgentPreset) -> Agent:
        """Return the agent for the next response, without tools that are unknown or cannot run here.

        Raise ModelNotFound, with a message for users, if the provider or the model is not configured.
        """
        provider, model = self.resolve(preset.provider, preset.model)
        config = self._config.providers[provider]
        own = config.models.get(model)
        support = self.reasoning_support(provider, model)
        # The choice as far as the model offers it, else that of the model's configuration.
        chosen = (support or NO_REASONING).applied(preset.reasoning)
        effort, budget = (own.reasoning_effort, own.thinking_budget) if own else (None, None)
        return Agent(
            name=preset.name,
            model=model,
            provider=self.provider(provider),
            system=preset.system_prompt,
            tools=self.usable_tools(preset.tools, preset.servers),
            max_rounds=preset.max_rounds,
            max_tokens=own.max_tokens if own else None,
            options=config.options | (own.options if own else {}),
            context_window=self.context_window(provider, model),
            capabilities=model_facts.capabilities_of(model, config),
            reasoning=Reasoning(chosen.effort or effort or "", chosen.budget or budget),
            support=support,
            allowed_hosts=preset.allowed_hosts,
            is_imported=preset.is_imported,
            rules=preset.rules,
        )

    # Tools

    def usable_tools(self, names: Iterable[str], servers: Sequence[AddedServer] = ()) -> tuple[Tool, ...]:
        """Return the tools that match these names and patterns and can be used now. Does not wait for MCP servers."""
        wanted = list(names)
        return available(wanted, self._search, self._added.tools) + self.servers.tools(wanted, servers)

    def tool_names(self) -> list[str]:
        """Return all names that an agent's list of tools may have, with one pattern for each MCP server."""
        own = [name for name in TOOLBOX if name != SEARCH or self._search]
        return [*own, *self._added.tools, *(f"{server}{SEPARATOR}*" for server in self._config.mcp)]

    def tool(self, name: str) -> Tool | None:
        """Return the tool of this name if it is one of Parley's or of the operator's, else None."""
        return TOOLBOX.get(name) or self._added.tools.get(name)

    @property
    def tool_problems(self) -> tuple[str, ...]:
        """The operator's tools that could not be loaded, each with the reason."""
        return self._added.problems

    @property
    def searches(self) -> bool:
        """Whether a search service is configured."""
        return self._search is not None

    def server_names(self) -> list[str]:
        """Return the names of the MCP servers in the configuration file."""
        return list(self._config.mcp)

    def may_be_tool(self, name: str) -> bool:
        """Return whether an agent's list of tools may have this name or pattern."""
        return self.tool(name) is not None or bool(server_of(name, self._config.mcp))

    # Models

    def choice(self, model: str) -> ModelChoice:
        """Return the model for "provider/model" or for a model's name in a preset; the default model for ""."""
        return self._choice(*self._locate("", model or self._config.default_model))

    def resolve(self, provider: str, model: str) -> tuple[str, str]:
        """Return the provider and the model, after completing empty values and checking both. Raise ModelNotFound.

        If both are empty, they come from the default preset.
        """
        if not provider and not model:
            start = self.preset()
            provider, model = start.provider, start.model
        provider, model = self._locate(provider, model)
        if provider not in self._config.providers:
            words = _(
                "The provider “{provider}” isn’t configured on this server. Choose another model.", provider=provider
            )
            raise ModelNotFound(words)
        model = model or self._default_model(provider)
        if not model:
            raise ModelNotFound(self._silence(provider))
        if not self.offers(provider, model):
            known = ", ".join(self._listings[provider].known())
            words = _(
                "“{provider}” has no model “{model}” here. Choose one of: {known}.",
                provider=provider,
                model=model,
                known=known,
            )
            raise ModelNotFound(words)
        return provider, model

    def offers(self, provider: str, model: str) -> bool:
        """Return whether a session may use the model. If the configuration lists models, only these are allowed."""
        listing = self._listings.get(provider)
        return listing is not None and bool(model) and (not listing.is_complete or model in listing.known())

    def may_be(self, model: str) -> bool:
        """Return whether a preset may name this model, as "provider/model" or by its name alone."""
        return is_known(model, self._config)

    def is_demo(self, provider: str) -> bool:
        """Return whether this is the provider of the demo agent, which uses no model."""
        config = self._config.providers.get(provider)
        return config is not None and config.type == "demo"

    def has_models(self) -> bool:
        """Return whether a provider other than the demo agent's is configured."""
        return any(config.type != "demo" for config in self._config.providers.values())

    def context_window(self, provider: str, model: str) -> int | None:
        """Return the window of a model (RUN-05).

        It is from the model's or the provider's configuration, else from the server's list, else from the table.
        Anthropic's list counts only for models that the table does not have.
        """
        config = self._config.providers.get(provider)
        if config is None:
            return model_facts.context_window(model)
        own = config.models.get(model)
        stated = model_facts.window_in_list(model, self._listings[provider].stated(model).window, config)
        return model_facts.context_window(model, own.context_window if own else None, config.context_window, stated)

    def price(self, provider: str, model: str) -> Price | None:
        """Return the price of a model, or None if it is not configured."""
        prices = self._config.prices
        return find_fact(f"{provider}/{model}", prices) if prices else None

    def reasoning_support(self, provider: str, model: str) -> ReasoningSupport | None:
        """Return how the model can reason: by the configuration and its name, else by the server's list.

        Return None if that is unknown.
        """
        config = self._config.providers.get(provider)
        return config.reasoning_support(model, self._listings[provider].stated(model).support) if config else None

    def known_models(self) -> list[ModelChoice]:
        """Return all models that are known now, without requests to servers."""
        return [self._choice(name, model) for name, listing in self._listings.items() for model in listing.known()]

    async def models(self) -> list[ModelChoice]:
        """Return all models. If lists are due, request them from the servers in parallel, for at most a few seconds.

        Never raises.
        """
        await asyncio.gather(*(listing.refresh() for listing in self._listings.values()))
        return self.known_models()

    # Providers

    @property
    def provider_names(self) -> list[str]:
        return list(self._config.providers)

    def provider(self, name: str) -> Provider:
        """Return the only instance of a configured provider. It is made at the first call."""
        with self._making:
            if name not in self._providers:
                config = self._config.providers[name]
                self._providers[name] = config.vendor.make(name, self._keys[name], config)
            return self._providers[name]

    async def close(self) -> None:
        """Close all connections."""
        await self.servers.close()
        for listing in self._listings.values():
            await listing.close()
        for provider in self._providers.values():
            await provider.close()

    def _listing(self, name: str, clock: Callable[[], float]) -> Listing:
        async def ask() -> Mapping[str, ListedModel]:
            return await self.provider(name).list_models()

        return Listing(name, self._config.providers[name], ask, clock)

    def _locate(self, provider: str, model: str) -> tuple[str, str]:
        """Return the provider and the name of a model. If no provider is given, find it.

        It is the provider in the model's prefix, else one that lists the model, else one with an open list, else the
        first one.
        """
        if provider or not model:
            return provider or next(iter(self._config.providers)), model
        named, rest = split_model(model, self._config.providers)
        if named:
            return named, rest
        listing = [name for name, one in self._listings.items() if model in one.known()]
        open_ended = [name for name, one in self._listings.items() if not one.is_complete]
        return next(iter([*listing, *open_ended, *self._config.providers])), model

    def _default_model(self, provider: str) -> str:
        return next(iter(self._listings[provider].known()), "")

    def _choice(self, provider: str, model: str) -> ModelChoice:
        model = model or self._default_model(provider)
        return ModelChoice(provider, model, self.context_window(provider, model))

    def _silence(self, provider: str) -> TranslatableText:
        why = self._listings[provider].problem or _("It hasn’t been queried yet.")
        return _(
            "Couldn’t get the list of models from “{provider}”. {why} Check the server, or choose a model.",
            provider=provider,
            why=why,
        )
