"""Tools: Python functions that a model may call, with their schema and limits. Their errors become results."""

from __future__ import annotations

import asyncio
import inspect
import logging
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, Literal, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.json_schema import GenerateJsonSchema

from agents.elicitation import Elicitation
from agents.errors import ToolError
from agents.foreign_text import ForeignText
from agents.knowledge import Knowledge
from agents.messages import UNREADABLE, Json, Message, ToolCall, ToolResult
from agents.questions import Question
from agents.safe_text import cut, safe_text
from agents.sandbox.command import Sandbox
from agents.schemas import usable_schema
from agents.sources import SourceNumbers
from agents.threads import ThreadError, in_thread

logger = logging.getLogger(__name__)

DEFAULT_TIME_LIMIT = 60.0
MAX_ERROR_CHARACTERS = 4_000
# What models read if a function exceeds its time limit in a thread, which cannot be stopped.
STILL_RUNNING = "It still runs and may succeed. If it changes something, check whether it did before you repeat it."
# Whether a tool can send data to others: always, if its sandbox has a network, or only as part of an address that it is
# to open.
SendsOut = Literal["never", "always", "network", "address"]
# Asks users a question while a call runs, waits for at most this many seconds, and returns their answer.
Ask = Callable[[Elicitation, float], Awaitable[Json]]
TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def _ignore(*_: object) -> None:
    """Do nothing with a report that is not shown."""


@dataclass(frozen=True, slots=True)
class ToolContext:
    """The turn in which a tool runs. A function gets it in a parameter of this type, which the model does not see.

    `messages` is the conversation so far, and `system` the instructions. `own_tools` are the tools whose results have
    no foreign text. `is_imported`: the conversation was imported from a file. If `allowed_hosts` is empty, all public
    hosts are allowed. `sandbox` runs commands and has the files; None without a session. `report` shows more output of
    the running tool, and `files_changed` announces changed session files; call both on the event loop.
    `sources` numbers the pages that tools find. `knowledge` are the files that users have chosen for the session, or
    None. `ask` asks users a question, and the call's time limit stops until the answer; None if no user is present.
    """

    messages: Sequence[Message] = ()
    system: str = ""
    own_tools: frozenset[str] = frozenset()
    is_imported: bool = False
    allowed_hosts: tuple[str, ...] = ()
    sandbox: Sandbox | None = None
    report: Callable[[str], None] = _ignore
    files_changed: Callable[[], None] = _ignore
    sources: SourceNumbers | None = None
    knowledge: Knowledge | None = None
    ask: Ask | None = None


NO_CONTEXT = ToolContext()


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that a model may call.

    `arguments` checks the arguments; if it is None, the function gets them unchecked, in its parameter `arguments`.
    `time_limit` is in seconds. `parallel`: it may run beside other calls. `approval`: users have to approve calls,
    unless a rule decides otherwise (`agents.approval`). `foreign`: its results have text that neither users nor Parley
    wrote; its origin is the tool, unless the function returns a ForeignText. `context` is the name of the parameter for
    the ToolContext, or "". An async function runs on the event loop. Any other function runs in its own thread, which
    cannot be stopped: after the time limit or Stop, its result is ignored. `question`: users answer the call, and the
    function is never called. `delegates`: another agent does the work. `about` describes the tool briefly for users.
    """

    name: str
    description: str
    parameters: Json
    function: Callable[..., Any]
    arguments: type[BaseModel] | None
    time_limit: float = DEFAULT_TIME_LIMIT
    parallel: bool = True
    approval: bool = False
    foreign: bool = False
    sends_out: SendsOut = "never"
    context: str = ""
    question: type[Question] | None = None
    delegates: bool = False
    about: str = ""

    @property
    def changes_nothing(self) -> bool:
        """Whether a call changes nothing, sends nothing out but addresses, and needs no approval."""
        return not self.approval and self.parallel and self.sends_out in ("never", "address")

    def can_send(self, sandbox: Sandbox | None) -> bool:
        """Return whether calls of this tool can send data to others. Some can only if their sandbox has a network."""
        has_network = sandbox is not None and sandbox.network
        return self.sends_out in ("always", "address") or (self.sends_out == "network" and has_network)

    def declares(self, call: ToolCall) -> bool:
        """Return whether the call has only arguments that the tool declares. A schema without names declares all."""
        names = self.parameters.get("properties")
        return not names or call.arguments.keys() <= names.keys()

    @property
    def summary(self) -> str:
        """The description for users: `about`, or the first paragraph of the description for models."""
        return self.about or " ".join(self.description.strip().split("\n\n")[0].split())

    def problem(self, call: ToolCall) -> ToolResult | None:
        """Return the failed result of a call with invalid arguments, which no user has to approve, or None."""
        try:
            self._validate(call)
        except ToolError as error:
            return failed_result(call, str(error))
        return None

    async def run(self, call: ToolCall, context: ToolContext = NO_CONTEXT) -> ToolResult:
        """Run the call within the time limit. Every failure except cancellation is an `is_error` result (RUN-11)."""
        try:
            arguments = self._validate(call) | ({self.context: context} if self.context else {})
            value = await self._within_limit(arguments)
            if isinstance(value, ForeignText):
                text = safe_text(value.text)
                return ToolResult(call.id, text, origin=value.origin, sources=value.sources, files=value.files)
            return ToolResult(call.id, safe_text(value), origin=self.name if self.foreign else "")
        except ToolError as error:
            return failed_result(call, str(error), error.origin)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            return failed_result(call, f"{self.name} was cancelled from within.")
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # a tool may raise anything; the model gets the message, the log the traceback
            logger.warning("Tool %s failed", self.name, exc_info=error)
            cause = error.original if isinstance(error, ThreadError) else error
            text = f"{type(cause).__name__}: {safe_text(cause)}"
            return failed_result(call, text, self.name if self.foreign else "")

    def _validate(self, call: ToolCall) -> dict[str, Any]:
        if UNREADABLE in call.arguments:
            raise ToolError(f"The arguments of {self.name} are not a JSON object. Call it again with valid JSON.")
        if self.arguments is None:
            return {"arguments": dict(call.arguments)}
        try:
            model = self.arguments.model_validate(call.arguments)
        except ValidationError as error:
            found = error.errors(include_url=False, include_context=False, include_input=False)
            problems = "; ".join(f"{'.'.join(map(str, one['loc'])) or 'arguments'}: {one['msg']}" for one in found)
            raise ToolError(f"Invalid arguments for {self.name}: {problems}") from error
        return {str(field.alias): getattr(model, name) for name, field in self.arguments.model_fields.items()}

    async def _within_limit(self, arguments: dict[str, Any]) -> object:
        limit = asyncio.timeout(self.time_limit)
        is_stoppable = inspect.iscoroutinefunction(self.function)  # a thread cannot be stopped
        context = arguments.get(self.context) if self.context else None
        if isinstance(context, ToolContext) and context.ask is not None:
            arguments = {**arguments, self.context: replace(context, ask=_Clock(limit).off(context.ask))}
        try:
            async with limit:
                if is_stoppable:
                    return await self.function(**arguments)
                return await in_thread(self.function, **arguments)
        except TimeoutError as error:
            if not limit.expired():
                raise
            end = " and was stopped." if is_stoppable else f". {STILL_RUNNING}"
            raise ToolError(f"{self.name} took longer than {self.time_limit:g} seconds{end}") from error


class _Clock:
    """The time limit of a call, which stops while users are asked."""

    def __init__(self, limit: asyncio.Timeout) -> None:
        self._limit = limit
        self._left = 0.0
        self._stops = 0

    def off(self, ask: Ask) -> Ask:
        async def ask_off_the_clock(question: Elicitation, seconds: float) -> Json:
            with self._stop_timeout():
                return await ask(question, seconds)

        return ask_off_the_clock

    @contextmanager
    def _stop_timeout(self) -> Iterator[None]:
        now = asyncio.get_running_loop().time
        if not self._stops:
            self._left = (self._limit.when() or now()) - now()
            self._set(None)
        self._stops += 1
        try:
            yield
        finally:
            self._stops -= 1
            if not self._stops:
                self._set(now() + self._left)

    def _set(self, when: float | None) -> None:
        with suppress(RuntimeError):  # the call has ended
            self._limit.reschedule(when)


def tool(
    *,
    name: str = "",
    time_limit: float = DEFAULT_TIME_LIMIT,
    parallel: bool = True,
    approval: bool = False,
    foreign: bool = False,
    sends_out: SendsOut = "never",
    about: str = "",
) -> Callable[[Callable[..., Any]], Tool]:
    """Return a decorator that makes a Tool of a function, with its name, its docstring and a schema of its signature.

    `about` describes the tool briefly for users. Describe parameters by `Annotated[type, Field(description=…)]`. The
    model does not see a parameter of the type ToolContext. The decorator raises TypeError if the function has no
    docstring, or has parameters that cannot be passed by name.
    """

    def decorate(function: Callable[..., Any]) -> Tool:
        tool_name = name or function.__name__
        description = inspect.getdoc(function)
        if not description or not TOOL_NAME.fullmatch(tool_name):
            raise TypeError(f"The tool {tool_name} needs a docstring and a name of letters, digits, _ and -.")
        context = next((each for each, hint in get_type_hints(function).items() if hint is ToolContext), "")
        arguments = _arguments_model(tool_name, function, context)
        return Tool(
            name=tool_name,
            description=description,
            parameters=schema_of(arguments),
            function=function,
            arguments=arguments,
            time_limit=time_limit,
            parallel=parallel,
            approval=approval,
            foreign=foreign,
            sends_out=sends_out,
            context=context,
            about=about,
        )

    return decorate


async def call_tool(tools: Mapping[str, Tool], call: ToolCall, context: ToolContext = NO_CONTEXT) -> ToolResult:
    """Run a call by the tool's name. An unknown name gives a failed result that lists the known names."""
    chosen = tools.get(call.name)
    if chosen is None:
        known = ", ".join(sorted(tools)) or "none"
        return failed_result(call, f"There is no tool named {call.name!r}. Available tools: {known}.")
    return await chosen.run(call, context)


def failed_result(call: ToolCall, why: str, origin: str = "") -> ToolResult:
    """Return a failed result, with a message for the model. `origin` is that of a message from elsewhere."""
    return ToolResult(call.id, safe_text(cut(why, MAX_ERROR_CHARACTERS)), is_error=True, origin=origin)


class _Schema(GenerateJsonSchema):
    """Schemas without titles, because these repeat the names and cost tokens in each request."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def schema_of(arguments: type[BaseModel]) -> Json:
    """Return the JSON schema of arguments in the form for models, without the limits that vendors refuse."""
    schema = usable_schema(arguments.model_json_schema(schema_generator=_Schema))
    schema.pop("title", None)
    return schema


def _arguments_model(name: str, function: Callable[..., Any], context: str) -> type[BaseModel]:
    hints = get_type_hints(function, include_extras=True)
    fields: dict[str, Any] = {}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name == context:
            continue
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise TypeError(f"The tool {name} has a parameter that cannot be given by name: {parameter}")
        default = ... if parameter.default is parameter.empty else parameter.default
        # The prefix prevents conflicts of names such as "schema" or "_x" with pydantic's own.
        fields[f"p_{parameter.name}"] = (hints.get(parameter.name, Any), Field(default, alias=parameter.name))
    return create_model(name, __config__=ConfigDict(extra="forbid", arbitrary_types_allowed=False), **fields)
