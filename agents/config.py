"""The shape of the configuration file, and what has to fit together in it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, PositiveInt, Tag

from agents.added_tools import NO_ADDED_TOOLS, AddedTools
from agents.approval import MOST_APPROVALS, Approvers, Rules, check_rule, guard_of
from agents.delegates import is_delegate
from agents.i18n import gettext as _
from agents.mcp import config as servers
from agents.mcp.config import SEPARATOR, ServerConfig, ServerName, server_of
from agents.prices import Price
from agents.providers.base import DEFAULT_RETRIES
from agents.reasoning import LARGEST_BUDGET, SMALLEST_BUDGET, Effort, ReasoningSupport, support_of
from agents.toolbox import DEFAULT_TOOLS, TOOLBOX
from agents.toolbox.address_policy import host_pattern
from agents.toolbox.search import config as searching
from agents.toolbox.search.config import SearchConfig
from agents.vendors import VENDORS, Vendor, vendor_type

# OpenAI's two forms: the Responses API, and Chat Completions, which other servers speak.
Api = Literal["responses", "chat"]
OPENAI_ITSELF = re.compile(r"https://([a-z0-9-]+\.)*api\.openai\.com(:443)?(/|$)", re.IGNORECASE)

# Symbols of static/icons.svg.
PromptIcon = Literal[
    "calculator",
    "clock",
    "code",
    "file-text",
    "globe",
    "image",
    "lightbulb",
    "list-checks",
    "message-square",
    "search",
    "sparkles",
    "square-pen",
    "table",
    "terminal",
    "users",
    "wrench",
]

DEFAULT_AGENT = "assistant"
DEFAULT_PROMPT = (
    "You are a helpful assistant in Parley, a chat that a team shares. Answer in Markdown and in the language of the "
    "person who asks. Use your tools where they make the answer better, and say so when you do not know something."
)


def _name(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,79}", value):
        raise ValueError("a name has 1 to 80 letters, digits, dots, - and _, and begins with a letter or digit")
    return value


def _share(value: int) -> int:
    if value and not LEAST_SHARE <= value <= MOST_SHARE:
        raise ValueError(f"give a percentage from {LEAST_SHARE} to {MOST_SHARE}, or 0")
    return value


def _web_address(value: str) -> str:
    if not re.match(r"https?://[^\s/]", value):
        raise ValueError("give a web address that begins with http:// or https://")
    return value


# Percentages of the context window at which a session may summarise earlier messages.
LEAST_SHARE = 30
MOST_SHARE = 95
Name = Annotated[str, AfterValidator(_name)]
Url = Annotated[str, AfterValidator(_web_address)]
ModelPattern = Annotated[str, Field(min_length=1, max_length=300), AfterValidator(str.lower)]
HostPattern = Annotated[str, AfterValidator(host_pattern)]
ThinkingBudget = Annotated[int, Field(ge=SMALLEST_BUDGET, le=LARGEST_BUDGET)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ModelConfig(_Strict):
    """One model of a provider; what is not set comes from the provider."""

    context_window: PositiveInt | None = None
    max_tokens: PositiveInt | None = None
    # Whether it is sent images and PDF files as they are; otherwise the text in them.
    vision: bool | None = None
    pdf: bool | None = None
    # How much it reasons where neither agent nor session says so, and the levels that it takes (not said: by its name).
    reasoning_effort: Effort | None = None
    thinking_budget: ThinkingBudget | None = None
    reasoning_efforts: tuple[Effort, ...] | None = None
    # Passed to the vendor's API as they are, over the provider's.
    options: dict[str, Any] = {}


def _as_models(value: object) -> object:
    """Accept a list of names for models without settings of their own."""
    if isinstance(value, list) and all(isinstance(name, str) for name in value):
        return {name: {} for name in value}
    return value


class ProviderConfig(_Strict):
    """One endpoint. Without `models` they are asked for at its listing endpoint."""

    type: Annotated[str, AfterValidator(vendor_type)]
    # Which of OpenAI's forms a server of type "openai" speaks; not said: "responses" for OpenAI itself, else "chat".
    api: Api | None = None
    api_key_env: str = ""
    base_url: Url | None = None
    context_window: PositiveInt | None = None
    vision: bool | None = None
    pdf: bool | None = None
    reasoning_efforts: tuple[Effort, ...] | None = None
    # How often the vendor's SDK repeats a request that was refused for now (429, 5xx) or found no connection. An answer
    # that breaks off before its first word is requested again by `agents.loop` in any case.
    max_retries: Annotated[int, Field(ge=0, le=10)] = DEFAULT_RETRIES
    timeout: Annotated[float, Field(gt=0, le=3600)] | None = None
    options: dict[str, Any] = {}
    models: Annotated[dict[str, ModelConfig], BeforeValidator(_as_models)] = {}

    @property
    def vendor(self) -> Vendor:
        return VENDORS[self.type]

    @property
    def is_openai(self) -> bool:
        """Whether this is OpenAI's own API, not another server that speaks its format."""
        return self.type == "openai" and (self.base_url is None or bool(OPENAI_ITSELF.match(self.base_url)))

    @property
    def openai_api(self) -> Api:
        """The form in which a provider of type "openai" is asked."""
        return self.api or ("responses" if self.is_openai else "chat")

    def reasoning_support(self, model: str) -> ReasoningSupport | None:
        """What a model offers: levels as configured for it or for the provider, all else as known by its name."""
        own = self.models.get(model)
        efforts = own.reasoning_efforts if own and own.reasoning_efforts is not None else self.reasoning_efforts
        return support_of(self.type, model, efforts)

    @property
    def listed(self) -> list[str]:
        """All models of the provider, if the configuration lists them; empty if its server is asked."""
        return list(self.models) or (["demo"] if self.type == "demo" else [])

    @property
    def key_name(self) -> str:
        """The environment variable that holds the key."""
        return self.api_key_env or self.vendor.key_env

    @property
    def needs_key(self) -> bool:
        """Whether a key must be set: one that the configuration names, or that of the vendor's own server."""
        return bool(self.api_key_env) or (bool(self.vendor.key_env) and self.base_url is None)


class PromptConfig(_Strict):
    """An opening prompt with what the home page shows above its text, and beside it."""

    text: Annotated[str, Field(min_length=1)]
    title: str = ""
    icon: PromptIcon = "message-square"


# By its shape a value is one or the other, so that an error is about one of them.
BY_SHAPE = Discriminator(lambda value: "[table]" if isinstance(value, (dict, BaseModel)) else "[text]")
TextOrPrompt = Annotated[Annotated[str, Tag("[text]")] | Annotated[PromptConfig, Tag("[table]")], BY_SHAPE]

# What the demo agent understands, for users who have not configured anything yet.
DEMO_PROMPTS = (
    PromptConfig(title=_("Meet the demo agent"), text=_("What can you do?"), icon="sparkles"),
    PromptConfig(title=_("Watch tools run"), text=_("Try your tools"), icon="wrench"),
    PromptConfig(title=_("See rich answers"), text=_("Format a table, a list and some code"), icon="table"),
    PromptConfig(title=_("Watch it reason"), text=_("Think step by step"), icon="lightbulb"),
)


Rule = Annotated[str, AfterValidator(check_rule)]


class AskConfig(_Strict):
    """Calls that need the approval of several people, or of people with a role in the workspace, each time."""

    rule: Rule
    approvals: Annotated[int, Field(ge=1, le=MOST_APPROVALS)] = 1
    approvers: Approvers = ""


RuleOrGuard = Annotated[Annotated[Rule, Tag("[text]")] | Annotated[AskConfig, Tag("[table]")], BY_SHAPE]


class ApprovalConfig(_Strict):
    """Which tool calls of an agent people have to approve; the tool itself says so where no rule matches."""

    allow: tuple[Rule, ...] = ()
    ask: tuple[RuleOrGuard, ...] = ()
    deny: tuple[Rule, ...] = ()

    def rules(self) -> Rules:
        plain = tuple(each for each in self.ask if isinstance(each, str))
        guarded = (each for each in self.ask if not isinstance(each, str))
        guards = tuple(guard_of(each.rule, each.approvals, each.approvers) for each in guarded)
        return Rules(self.allow, plain, self.deny, guarded=guards)


class AgentConfig(_Strict):
    """One preset: what a new session starts with."""

    title: Annotated[str, Field(max_length=80)] = ""
    # What people see beside its messages and in lists; "" for its initials.
    icon: Literal[PromptIcon, ""] = ""
    model: str = ""
    system_prompt: str = DEFAULT_PROMPT
    tools: tuple[str, ...] = tuple(tool.name for tool in DEFAULT_TOOLS)
    max_rounds: Annotated[int, Field(ge=1, le=1000)] = 25
    prompts: tuple[TextOrPrompt, ...] = ()
    reasoning_effort: Effort | None = None
    thinking_budget: ThinkingBudget | None = None
    # The hosts that its tools may fetch from; none: all that are public.
    allowed_hosts: tuple[HostPattern, ...] = ()
    approval: ApprovalConfig = ApprovalConfig()
    # The percentage of the context window at which its sessions summarise earlier messages; 0: only by hand.
    compact_at: Annotated[int, AfterValidator(_share)] = 0
    # Whether it gets the notes that people have accepted in earlier sessions.
    memory: bool = True
    # The files of a workspace that it uses in sessions there, by name or pattern: `*` for all.
    knowledge: tuple[Annotated[str, Field(min_length=1, max_length=255)], ...] = ()


class Config(_Strict):
    """The whole file."""

    providers: dict[Name, ProviderConfig] = {}
    agents: dict[Name, AgentConfig] = {}
    mcp: dict[ServerName, ServerConfig] = {}
    search: SearchConfig | None = None
    # By "provider/model", a model's name, or a pattern of either with `*`.
    prices: dict[ModelPattern, Price] = {}
    default_agent: str = ""
    default_model: str = ""


def split_model(text: str, providers: Mapping[str, ProviderConfig]) -> tuple[str, str]:
    """Split "provider/model"; ("", text) if the part before the slash is no provider (model names can have slashes)."""
    provider, slash, model = text.partition("/")
    return (provider, model) if slash and provider in providers else ("", text)


def problems(config: Config, env: Mapping[str, str], added: AddedTools = NO_ADDED_TOOLS) -> Iterator[str]:
    """Yield what is wrong beside the shape, each as "key: what is wrong and what to do".

    An unknown tool is no problem if some of the operator's tools could not be loaded: it may be one of these.
    """
    for name, provider in config.providers.items():
        if provider.needs_key and not env.get(provider.key_name, "").strip():
            yield (
                f"providers.{name}.api_key_env: the environment variable {provider.key_name} is not set; "
                f"set it to the key, or remove the provider"
            )
        yield from _provider_problems(f"providers.{name}", provider)
    yield from servers.problems(config.mcp)
    if config.search:
        yield from searching.problems(config.search, env)
    for name, agent in config.agents.items():
        for tool in sorted(set(agent.tools) - {*TOOLBOX, *added.tools}):
            if not (server_of(tool, config.mcp) or is_delegate(tool) or added.problems):
                known = ", ".join([*TOOLBOX, *added.tools, *(f"{server}{SEPARATOR}*" for server in config.mcp)])
                yield f"agents.{name}.tools: there is no tool {tool!r}; choose from {known}"
        yield from _model_problems(f"agents.{name}.model", agent.model, config)
        named, model = split_model(agent.model, config.providers)
        if named:
            provider = config.providers[named]
            yield from _reasoning_problems(
                f"agents.{name}", provider, model, agent.reasoning_effort, agent.thinking_budget
            )
    yield from _model_problems("default_model", config.default_model, config)
    if config.default_agent and config.default_agent not in config.agents:
        known = ", ".join(config.agents) or "none is configured"
        yield f"default_agent: there is no agent {config.default_agent!r}; choose from: {known}"


def is_known(text: str, config: Config) -> bool:
    """Whether some provider may have the model: where lists are complete it must be listed, else any name will do."""
    provider, model = split_model(text, config.providers)
    asked = [config.providers[provider]] if provider else list(config.providers.values())
    return bool(model) and any(not one.listed or model in one.listed for one in asked)


def _model_problems(key: str, text: str, config: Config) -> Iterator[str]:
    if text and not is_known(text, config):
        listed = [f"{name}/{model}" for name, one in config.providers.items() for model in one.listed]
        yield f"{key}: no provider lists {text!r}; choose from: {', '.join(listed)}"


def _provider_problems(key: str, provider: ProviderConfig) -> Iterator[str]:
    for option in sorted(set(provider.options) - {"tokens_per_second"}) if provider.type == "demo" else ():
        yield f"{key}.options.{option}: the demo agent has only tokens_per_second; remove it"
    if provider.api and provider.type != "openai":
        yield f"{key}.api: only providers of type openai have a choice of API; remove it"
    if provider.options.get("n", 1) != 1:
        yield f"{key}.options.n: Parley shows one answer per request; remove it"
    for model, own in provider.models.items():
        if own.options.get("n", 1) != 1:
            yield f"{key}.models.{model}.options.n: Parley shows one answer per request; remove it"
        yield from _reasoning_problems(
            f"{key}.models.{model}", provider, model, own.reasoning_effort, own.thinking_budget
        )


def _reasoning_problems(
    key: str, provider: ProviderConfig, model: str, effort: str | None, budget: int | None
) -> Iterator[str]:
    """Check a choice against what the model is known to offer; of an unknown model anything may be right."""
    support = provider.reasoning_support(model)
    if support is None and provider.type != "demo":
        return
    offered = support.efforts if support else ()
    if effort is not None and effort not in offered:
        levels = f"choose from {', '.join(offered)}" if offered else "remove it"
        yield f"{key}.reasoning_effort: {model} does not take the level {effort!r}; {levels}"
    if budget is not None and not (support and support.budget):
        yield f"{key}.thinking_budget: {model} does not take a thinking budget; remove it"
