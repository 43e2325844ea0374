"""The shape of the configuration file, and the checks that compare its parts with each other."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, PositiveInt, Tag

from agents.added_tools import NO_ADDED_TOOLS, AddedTools
from agents.approval import MAX_APPROVALS, Approvers, Rules, check_rule, parse_rule
from agents.delegates import is_delegate
from agents.i18n import gettext as _
from agents.key_variables import not_set
from agents.mcp import config as servers
from agents.mcp.config import SEPARATOR, ServerConfig, ServerName, server_of
from agents.prices import Price
from agents.providers.base import DEFAULT_RETRIES
from agents.reasoning import MAX_BUDGET, MIN_BUDGET, Effort, ReasoningSupport, support_of
from agents.toolbox import DEFAULT_TOOLS, TOOLBOX
from agents.toolbox.address_policy import host_pattern
from agents.toolbox.public_addresses import has_leading_zeros
from agents.toolbox.search import config as searching
from agents.toolbox.search.config import SearchConfig
from agents.vendors import VENDORS, Vendor, vendor_type

# OpenAI's two APIs: Responses, and Chat Completions, which other servers offer, too.
Api = Literal["responses", "chat"]
OPENAI_ITSELF = re.compile(r"https://([a-z0-9-]+\.)*api\.openai\.com(:443)?(/|$)", re.IGNORECASE)

# Names of symbols in static/icons.svg.
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
        raise ValueError("a name must have 1 to 80 letters, digits, dots, - and _, and begin with a letter or digit")
    return value


def _share(value: int) -> int:
    if value and not MIN_SHARE <= value <= MAX_SHARE:
        raise ValueError(f"must be a percentage from {MIN_SHARE} to {MAX_SHARE}, or 0")
    return value


def _web_address(value: str) -> str:
    if not re.match(r"https?://[^\s/]", value):
        raise ValueError("must be a web address that begins with http:// or https://")
    return _readable(value)


def _readable(address: str) -> str:
    if has_leading_zeros(urlsplit(address).hostname or ""):
        raise ValueError("must have an IP address without leading zeros, because some programs read 010 as 8")
    return address


def _with_readable_url(server: ServerConfig) -> ServerConfig:
    """Check the address of a server from the file. Addresses that users add are checked when they enter them."""
    _readable(server.url or "")
    return server


# Percentages of the context window at which a session may summarize earlier messages.
MIN_SHARE = 30
MAX_SHARE = 95
Name = Annotated[str, AfterValidator(_name)]
Url = Annotated[str, AfterValidator(_web_address)]
ModelPattern = Annotated[str, Field(min_length=1, max_length=300), AfterValidator(str.lower)]
HostPattern = Annotated[str, AfterValidator(host_pattern)]
ThinkingBudget = Annotated[int, Field(ge=MIN_BUDGET, le=MAX_BUDGET)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ModelConfig(_Strict):
    """The settings of one model. A setting that is not set here comes from the provider."""

    context_window: PositiveInt | None = None
    max_tokens: PositiveInt | None = None
    # Whether images and PDF files are sent to the model unchanged. Otherwise the model gets the text in them.
    vision: bool | None = None
    pdf: bool | None = None
    # How much the model reasons if neither the agent nor the session sets it, and the levels that it accepts.
    # If neither the model nor the provider sets the levels, they follow from the model's name.
    reasoning_effort: Effort | None = None
    thinking_budget: ThinkingBudget | None = None
    reasoning_efforts: tuple[Effort, ...] | None = None
    # Passed unchanged to the vendor's API. They take precedence over the provider's options.
    options: dict[str, Any] = {}


def _as_models(value: object) -> object:
    """Turn a list of names into models with default settings. Raise ValueError for a single name."""
    if isinstance(value, str):
        raise ValueError(f'must be a list of names, such as ["{value}"]')
    if isinstance(value, list) and all(isinstance(name, str) for name in value):
        return {name: {} for name in value}
    return value


class ProviderConfig(_Strict):
    """One endpoint. If `models` is empty, Parley requests the list of models from the endpoint.

    From servers of type "openai" other than OpenAI, it also requests the context windows that are not configured.
    """

    type: Annotated[str, AfterValidator(vendor_type)]
    # The API that a server of type "openai" is asked with. Default: "responses" for OpenAI itself, "chat" for others.
    api: Api | None = None
    api_key_env: str = ""
    base_url: Url | None = None
    context_window: PositiveInt | None = None
    vision: bool | None = None
    pdf: bool | None = None
    reasoning_efforts: tuple[Effort, ...] | None = None
    # How often the vendor's SDK repeats a request that failed with 429, 5xx or without a connection. An answer that
    # breaks off before its first word is also requested again by `agents.loop`, independently of this number.
    max_retries: Annotated[int, Field(ge=0, le=10)] = DEFAULT_RETRIES
    timeout: Annotated[float, Field(gt=0, le=3600)] | None = None
    options: dict[str, Any] = {}
    models: Annotated[dict[str, ModelConfig], BeforeValidator(_as_models)] = {}

    @property
    def vendor(self) -> Vendor:
        return VENDORS[self.type]

    @property
    def is_openai(self) -> bool:
        """Whether this is OpenAI's own server, not another server that uses its format."""
        return self.type == "openai" and (self.base_url is None or bool(OPENAI_ITSELF.match(self.base_url)))

    @property
    def openai_api(self) -> Api:
        """The API with which a provider of type "openai" is asked."""
        return self.api or ("responses" if self.is_openai else "chat")

    def reasoning_support(self, model: str, stated: ReasoningSupport | None = None) -> ReasoningSupport | None:
        """Return how a model can reason, or None if that is unknown.

        The levels are those configured for the model or for the provider. All else follows from the model's name, else
        from `stated`, which is what the server's list states.
        """
        own = self.models.get(model)
        efforts = own.reasoning_efforts if own and own.reasoning_efforts is not None else self.reasoning_efforts
        return support_of(self.type, model, efforts, stated)

    @property
    def listed(self) -> list[str]:
        """The models that are known without a request; empty if those in the server's list may be used."""
        return list(self.models) or (["demo"] if self.type == "demo" else [])

    @property
    def key_name(self) -> str:
        """The environment variable that holds the key."""
        return self.api_key_env or self.vendor.key_env

    @property
    def needs_key(self) -> bool:
        """Whether a key must be set, because the configuration names one or because the vendor's server needs it."""
        return bool(self.api_key_env) or (bool(self.vendor.key_env) and self.base_url is None)


class PromptConfig(_Strict):
    """An opening prompt. The home page shows `title` above its text and `icon` beside it."""

    text: Annotated[str, Field(min_length=1)]
    title: str = ""
    icon: PromptIcon = "message-square"


# The shape of a value selects the type against which it is checked, so that its errors are about that type alone.
BY_SHAPE = Discriminator(lambda value: "[table]" if isinstance(value, (dict, BaseModel)) else "[text]")
TextOrPrompt = Annotated[Annotated[str, Tag("[text]")] | Annotated[PromptConfig, Tag("[table]")], BY_SHAPE]

# Prompts that the demo agent understands, for an installation in which nothing is configured yet.
DEMO_PROMPTS = (
    PromptConfig(title=_("Meet the demo agent"), text=_("What can you do?"), icon="sparkles"),
    PromptConfig(title=_("Watch tools run"), text=_("Try your tools"), icon="wrench"),
    PromptConfig(title=_("See rich answers"), text=_("Format a table, a list and some code"), icon="table"),
    PromptConfig(title=_("Watch it reason"), text=_("Think step by step"), icon="lightbulb"),
)


Rule = Annotated[str, AfterValidator(check_rule)]


class AskConfig(_Strict):
    """Calls that need the approval of several users, or of users with a role in the workspace, each time."""

    rule: Rule
    approvals: Annotated[int, Field(ge=1, le=MAX_APPROVALS)] = 1
    approvers: Approvers = ""


RuleOrTable = Annotated[Annotated[Rule, Tag("[text]")] | Annotated[AskConfig, Tag("[table]")], BY_SHAPE]


class ApprovalConfig(_Strict):
    """The rules for which tool calls of an agent need an approval. If no rule matches, the tool's setting decides."""

    allow: tuple[Rule, ...] = ()
    ask: tuple[RuleOrTable, ...] = ()
    deny: tuple[Rule, ...] = ()

    def rules(self) -> Rules:
        plain = tuple(each for each in self.ask if isinstance(each, str))
        guarded = (each for each in self.ask if not isinstance(each, str))
        parsed = tuple(parse_rule(each.rule, each.approvals, each.approvers) for each in guarded)
        return Rules(self.allow, plain, self.deny, guarded=parsed)


class AgentConfig(_Strict):
    """One preset: the settings with which a new session starts."""

    title: Annotated[str, Field(max_length=80)] = ""
    # The icon beside the agent's messages and in lists; "" for the agent's initials.
    icon: Literal[PromptIcon, ""] = ""
    model: str = ""
    system_prompt: str = DEFAULT_PROMPT
    tools: tuple[str, ...] = tuple(tool.name for tool in DEFAULT_TOOLS)
    max_rounds: Annotated[int, Field(ge=1, le=1000)] = 25
    prompts: tuple[TextOrPrompt, ...] = ()
    reasoning_effort: Effort | None = None
    thinking_budget: ThinkingBudget | None = None
    # The hosts from which its tools may fetch. If empty, they may fetch from all public hosts.
    allowed_hosts: tuple[HostPattern, ...] = ()
    approval: ApprovalConfig = ApprovalConfig()
    # The percentage of the context window at which its sessions summarize earlier messages; 0: only when a user asks.
    compact_at: Annotated[int, AfterValidator(_share)] = 0
    # Whether the agent gets the notes that users have accepted in earlier sessions.
    memory: bool = True
    # The names or patterns of the workspace's files that the agent may use; `*` for all.
    knowledge: tuple[Annotated[str, Field(min_length=1, max_length=255)], ...] = ()


class Config(_Strict):
    """The whole file."""

    providers: dict[Name, ProviderConfig] = {}
    agents: dict[Name, AgentConfig] = {}
    mcp: dict[ServerName, Annotated[ServerConfig, AfterValidator(_with_readable_url)]] = {}
    search: SearchConfig | None = None
    # By "provider/model", a model's name, or a pattern of either with `*`.
    prices: dict[ModelPattern, Price] = {}
    default_agent: str = ""
    default_model: str = ""


def split_model(text: str, providers: Mapping[str, ProviderConfig]) -> tuple[str, str]:
    """Split "provider/model" into its parts.

    Return ("", text) if the part before the slash is not a provider, because names of models can have slashes, too.
    """
    provider, slash, model = text.partition("/")
    return (provider, model) if slash and provider in providers else ("", text)


def problems(config: Config, env: Mapping[str, str], added: AddedTools = NO_ADDED_TOOLS) -> Iterator[str]:
    """Yield the problems that pydantic does not find, each as "key: what is wrong and what to do".

    If some of the operator's tools could not be loaded, unknown tools are not reported, as they may be among these.
    """
    for name, provider in config.providers.items():
        if provider.needs_key and not env.get(provider.key_name, "").strip():
            yield (
                f"providers.{name}.api_key_env: {not_set(provider.key_name)}; "
                f"set it to the API key, or remove the provider"
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
    """Return whether a provider may have the model.

    If the configuration lists a provider's models, the model must be listed. Otherwise any name is accepted.
    """
    provider, model = split_model(text, config.providers)
    asked = [config.providers[provider]] if provider else list(config.providers.values())
    return bool(model) and any(not one.listed or model in one.listed for one in asked)


def _model_problems(key: str, text: str, config: Config) -> Iterator[str]:
    if text and not is_known(text, config):
        listed = [f"{name}/{model}" for name, one in config.providers.items() for model in one.listed]
        only_demo = all(one.type == "demo" for one in config.providers.values())
        more = "; or configure its provider, for example by the environment variable ANTHROPIC_API_KEY"
        yield f"{key}: no provider lists {text!r}; choose from: {', '.join(listed)}{more if only_demo else ''}"


def _provider_problems(key: str, provider: ProviderConfig) -> Iterator[str]:
    for option in sorted(set(provider.options) - {"tokens_per_second"}) if provider.type == "demo" else ():
        yield f"{key}.options.{option}: the demo agent has no other option than tokens_per_second; remove it"
    if provider.api and provider.type != "openai":
        yield f"{key}.api: only providers of type openai can choose an API; remove it"
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
    """Check a choice against what the model offers. For an unknown model, every choice is accepted."""
    support = provider.reasoning_support(model)
    if support is None and provider.type != "demo":
        return
    offered = support.efforts if support else ()
    if effort is not None and effort not in offered:
        levels = f"choose from {', '.join(offered)}" if offered else "remove it"
        yield f"{key}.reasoning_effort: {model} does not support the level {effort!r}; {levels}"
    if budget is not None and not (support and support.budget):
        yield f"{key}.thinking_budget: {model} does not support a thinking budget; remove it"
