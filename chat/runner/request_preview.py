"""The next request of a session, as a preview for users and API clients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agents.errors import AgentError
from agents.i18n import TranslatableText
from agents.loop import Agent, request_of
from agents.messages import Message, Thinking
from agents.providers.base import Request
from agents.providers.dialect import Dialect
from agents.providers.forms import (
    VendorRequest,
    before_next_message,
    dialect_of,
    form_of,
    preview,
    sent_reasoning,
    without_refused_reasoning,
)
from agents.tools import Tool
from chat.agents_setup import registry
from chat.models import ChatMessage, MemoryNote, Session
from chat.models.run import RunState, SessionRun
from chat.projections.context import NOTHING_AROUND, Around, context
from chat.projections.context_view import Block, blocks
from chat.projections.estimate import of_text, of_tools
from chat.projections.measure import Measure, measure_request
from chat.queries import cast, presets
from chat.queries.context_rows import context_rows
from chat.queries.memory import notes_in, with_notes
from chat.queries.senders import around_request
from chat.runner.agent_input import build_session_agent, prompt_of, view_of
from chat.runner.attached_files import FileParts, Reader, file_sizes, load_file_parts

# The columns that `measure_request` needs in addition to those of the context.
MEASURED = ("model", "timestamp", "input_tokens")


@dataclass(frozen=True, slots=True)
class NextRequest:
    """The next request and the rows it is made from.

    Without an `agent` it cannot be sent, and `problem` is the reason. `name` is the agent of the session that the
    request is for; "" means the session's own agent. If the session `is_idle`, a user's message comes first. `around`
    has the senders of the messages that a summary replaces.
    """

    session: Session
    rows: Sequence[ChatMessage]
    files: FileParts
    notes: Sequence[MemoryNote] = ()
    agent: Agent | None = None
    problem: TranslatableText | str = ""
    name: str = ""
    is_idle: bool = False
    around: Around = NOTHING_AROUND

    @property
    def system(self) -> str:
        return with_notes(self.prompt, self.notes)

    @property
    def prompt(self) -> str:
        """The system prompt without the notes."""
        own = presets.own(self.session, self.name)
        return prompt_of(self.session, self.rows, own, self.name, around=self.around)

    @property
    def tools(self) -> Sequence[Tool]:
        return self.agent.tools if self.agent else ()

    @property
    def messages(self) -> list[Message]:
        return context(self.rows, self.files, self.around)

    @property
    def provider_name(self) -> str:
        """The name of the provider that would get the request."""
        return self.agent.provider.name if self.agent else presets.own(self.session, self.name).provider

    @property
    def model(self) -> str:
        return self.agent.model if self.agent else presets.own(self.session, self.name).model

    @property
    def window(self) -> int | None:
        """The context window of the model that would get the request, in tokens."""
        if not self.name:
            return self.session.context_window
        return registry().context_window(self.provider_name, self.model)

    @property
    def request(self) -> Request:
        """The request as the agent makes it. Without an agent, only the messages and the system prompt."""
        return self._request(self.messages)

    def _request(self, messages: Sequence[Message]) -> Request:
        if self.agent is None:
            return Request(self.model, tuple(messages), self.system)
        return without_refused_reasoning(self.agent.provider, request_of(self.agent, messages))

    def in_form(self, form: str | None) -> tuple[str, VendorRequest]:
        """Return the request in a vendor's form, and the name of the form; None means that of the provider."""
        form, request, dialect = self._in_form(form, self.messages)
        return form, preview(form, request, self.provider_name, dialect)

    def _in_form(self, form: str | None, messages: Sequence[Message]) -> tuple[str, Request, Dialect]:
        request, provider = self._request(messages), self.agent.provider if self.agent else None
        form, dialect = form or form_of(provider, request.model), dialect_of(provider, request.model)
        if self.is_idle:
            request = before_next_message(form, request, self.provider_name, dialect)
        return form, request, dialect

    def _sent_reasoning(self, messages: Sequence[Message]) -> list[Thinking]:
        form, request, dialect = self._in_form(None, messages)
        return sent_reasoning(form, request, self.provider_name, dialect)

    def estimate(self) -> tuple[list[Block], Measure]:
        """Return the context's blocks with estimated tokens, and the measure. The rows need the `MEASURED` columns."""
        laid = blocks(self.rows, self.files, self._sent_reasoning, self.around)
        rest = of_text(self.system) + of_tools(self.tools)
        return laid, measure_request(laid, rest, (self.provider_name, self.model))


def next_request(session: Session, *more: str, reader: Reader = file_sizes, agent: str = "") -> NextRequest:
    """Read the next request of a session to one of its agents. An empty or unknown `agent` means the session's own.

    `more` are additional columns to read of the rows. `reader` reads the files that the model accepts.
    """
    name = agent if agent in {each.name for each in cast.others(session)} else ""
    is_idle = not SessionRun.objects.filter(pk=session.pk).exclude(state=RunState.IDLE).exists()
    rows, notes = view_of(session, context_rows(session, *more), name), notes_in(session)
    around = around_request(session.pk, rows)
    try:
        built = build_session_agent(session, rows, notes, name, around)
    except AgentError as error:
        return NextRequest(session, rows, {}, notes, problem=error.message, name=name, is_idle=is_idle, around=around)
    files = load_file_parts(rows, built, reader)
    return NextRequest(session, rows, files, notes, built, name=name, is_idle=is_idle, around=around)
