"""The errors of the agent engine, sorted by who can solve the problem.

                                                                                                    remedy
AgentError
├── ConfigError              the operator: names file, key and remedy                               setting
├── ToolError                the model: becomes a result with is_error
└── ProviderError            a user: becomes an error row                                           retry
    ├── AuthenticationFailed     the key is wrong or may not use the model                          setting
    ├── ModelNotFound            the model's name is wrong                                          model
    ├── RequestRejected          the provider refuses the request                                   model
    │   ├── ContextTooLong       the conversation no longer fits the model                          model
    │   ├── NoCredit             the account at the provider cannot pay                             setting
    │   ├── ToolsRefused         the model accepts no tools, or not these; it works without them    model
    │   ├── ParameterRefused     the provider refuses a configured parameter                        setting
    │   └── Unsendable           the request cannot be sent: its address or key is invalid          setting
    ├── RateLimited              try later (transient)                                              retry
    ├── Overloaded               try later (transient; 5xx, 529)                                    retry
    ├── ConnectionLost           the network or the server failed (transient)                       retry
    ├── ResponseTimedOut         nothing arrived for too long (transient)                           retry
    ├── ResponseBroken           the response cannot be read                                        retry
    │   └── CallBroken               the server cannot read the model's tool call (transient)       retry
    ├── OutputLimitReached       the answer was cut at the model's output limit                     retry
    └── AnswerRefused            the model declined to answer                                       model
"""

from __future__ import annotations

from typing import ClassVar, Literal

# What can solve the problem: a retry, another model, or a setting that an administrator has to change.
# A context that is too long can also be summarized. Its remedy stays "model" for clients that do not offer a summary.
Remedy = Literal["retry", "model", "setting"]


class AgentError(Exception):
    """The root of all errors here.

    `str(error)` is shown to users: it explains what happened and what to do. It never has a stack trace or a key.
    """

    code: ClassVar[str] = "agent_error"
    remedy: ClassVar[Remedy] = "retry"

    @property
    def message(self) -> str:
        """The message for users. If it can be translated, it is an `agents.i18n.TranslatableText`."""
        return self.args[0] if self.args and isinstance(self.args[0], str) else str(self)


class ConfigError(AgentError):
    """The configuration cannot be used."""

    code = "config"
    remedy: ClassVar[Remedy] = "setting"


class ToolError(AgentError):
    """A tool could not do what the model requested. The text is for the model.

    `origin` is the place from which the text comes, such as an MCP server, or "" if the text is Parley's own.
    """

    code = "tool"

    def __init__(self, text: str, *, origin: str = "") -> None:
        super().__init__(text)
        self.origin = origin


class ProviderError(AgentError):
    """A model provider failed.

    `transient`: a retry may help. `retry_after`: the seconds to wait, if the server named them. `sdk_retried`: the SDK
    has already retried as often as configured, so the loop does not retry.
    """

    code = "provider"
    transient: ClassVar[bool] = False

    def __init__(self, message: str, *, retry_after: float | None = None, status: int | None = None) -> None:
        super().__init__(message)
        self.sdk_retried = False
        self.retry_after = retry_after
        self.status = status


class AuthenticationFailed(ProviderError):
    code = "authentication"
    remedy: ClassVar[Remedy] = "setting"


class ModelNotFound(ProviderError):
    code = "model_not_found"
    remedy: ClassVar[Remedy] = "model"


class RequestRejected(ProviderError):
    code = "rejected"
    remedy: ClassVar[Remedy] = "model"


class ContextTooLong(RequestRejected):
    code = "context_too_long"


class NoCredit(RequestRejected):
    code = "no_credit"
    remedy: ClassVar[Remedy] = "setting"


class ToolsRefused(RequestRejected):
    code = "tools_refused"


class ParameterRefused(RequestRejected):
    code = "parameter_refused"
    remedy: ClassVar[Remedy] = "setting"


class Unsendable(RequestRejected):
    code = "unsendable"
    remedy: ClassVar[Remedy] = "setting"


class RateLimited(ProviderError):
    code = "rate_limited"
    transient = True


class Overloaded(ProviderError):
    code = "overloaded"
    transient = True


class ConnectionLost(ProviderError):
    code = "connection_lost"
    transient = True


class ResponseTimedOut(ProviderError):
    code = "timed_out"
    transient = True


class ResponseBroken(ProviderError):
    code = "broken"


class CallBroken(ResponseBroken):
    """The model wrote a tool call wrongly, so the server sent no answer. Another answer may not have this mistake."""

    transient = True


class OutputLimitReached(ProviderError):
    code = "output_limit"


class AnswerRefused(ProviderError):
    code = "refused"
    remedy: ClassVar[Remedy] = "model"
