"""A past request to the model, compared with the request that would be sent now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from agents.errors import AgentError
from agents.loop import Agent
from agents.messages import Json, Message, Thinking
from agents.providers.base import Request
from agents.providers.forms import form_of, sent_reasoning
from chat.agents_setup import registry
from chat.models import ChatMessage, Session, attached_to
from chat.projections.context import CONTEXT_FIELDS, prompt_row
from chat.projections.context_diff import Since, new_rows, rows_before, since
from chat.projections.context_view import Block, SentReasoning, blocks
from chat.projections.estimate import of_text, of_tools
from chat.projections.measure import Measure, correct
from chat.queries import presets
from chat.queries.attachments import fetch_attachments
from chat.queries.knowledge import tools_of
from chat.queries.mcp_servers import with_servers
from chat.queries.model_requests import RecordedRequest, past_request
from chat.rendering.messages.context_blocks import BlockView, Excerpt, LineView, block_view, text_of_row
from chat.runner.agent_input import prompt_of, view_of
from chat.runner.attached_files import FileParts, file_sizes, load_file_parts
from chat.views.context_page import context_page

# The maximal number of new rows that are rendered.
MAX_NEW = 20


def past_values(session: Session, message: ChatMessage, until: int | None, *, with_removed: bool) -> Json:
    """Return the template context for the request of a message's response. `past` is None if it was not recorded.

    With `with_removed`, for users who may restore them, removed messages are included. Otherwise they are only counted.
    The number of queries is constant.
    """
    past = past_request(session, message.response_id)
    if past is None:
        return {"past": None, "message": message, "is_copied": message.timestamp < session.created_at}
    then = _then(session, past)
    hidden = set() if with_removed else {pk for pk, row in past.now.items() if row.removed_at is not None}
    return {
        "past": past,
        "message": message,
        **_sent_values(past, then, hidden, until),
        **_comparison(session, past, then),
    }


@dataclass(frozen=True, slots=True)
class _Then:
    """A past request: the rows as its agent got them, and the system prompt, tools, files and token estimate."""

    rows: Sequence[ChatMessage]
    system: str
    tools: float
    files: FileParts
    measure: Measure
    files_known: bool
    sent_reasoning: SentReasoning


def _then(session: Session, past: RecordedRequest) -> _Then:
    agent = _agent(session, past)
    files = load_file_parts(past.rows, agent, file_sizes) if agent else {}
    seen = view_of(session, past.rows, past.made.agent)
    now = with_servers(presets.own(session, past.made.agent), session)
    system = prompt_of(session, seen, now, past.made.agent, past.system_prompt, past.around)
    tools = of_tools(tools_of(session, now, past.made.tools))
    form = form_of(agent.provider if agent else None, past.made.model)

    def sent(messages: Sequence[Message]) -> list[Thinking]:
        return sent_reasoning(form, Request(past.made.model, tuple(messages)), past.made.provider)

    measure = _measure(blocks(seen, files, sent, past.around), of_text(system) + tools, past)
    return _Then(seen, system, tools, files, measure, files_known=agent is not None, sent_reasoning=sent)


def _sent_values(past: RecordedRequest, then: _Then, hidden: set[str], until: int | None) -> Json:
    rows = [row for row in then.rows if row.pk not in hidden]
    laid = blocks(rows, then.files, then.sent_reasoning, past.around)
    page, own = context_page(laid, until), prompt_row(past.rows)
    return {
        "page": page,
        "blocks": [_mark_changes(_draw(block, then), past) for block in page.blocks],
        "total": then.measure.tokens(then.measure.estimate),
        "measure": then.measure,
        "prompt": Excerpt.of("" if own and own.pk in hidden else then.system),
        "prompt_tokens": then.measure.tokens(of_text(then.system)),
        "own_prompt": own is None,
        "tools": past.made.tools,
        "tools_tokens": then.measure.tokens(then.tools),
        "files_unknown": not then.files_known and any(map(attached_to, past.rows)),
    }


def _comparison(session: Session, past: RecordedRequest, then: _Then) -> Json:
    live = list(
        ChatMessage.objects.in_conversation(session.pk)
        .only(*CONTEXT_FIELDS, "model", "edited_by_name")
        .order_by("sequence")
    )
    before = rows_before(live, past.made.response_id)
    fresh = new_rows(before, past.now)
    fetch_attachments(fresh, with_text=True)
    now = with_servers(presets.own(session, past.made.agent), session)
    system = prompt_of(session, view_of(session, before, past.made.agent), now, past.made.agent)
    tools = [tool.name for tool in tools_of(session, now)]
    return {
        "fresh": [_draw(block, then) for block in blocks(fresh)[:MAX_NEW]],
        "counts": _counts(past, len(fresh)),
        "prompt_now": system if system != then.system else None,
        "tools_changed": tools != past.made.tools,
    }


def _draw(block: Block, then: _Then) -> BlockView:
    return block_view(block, then.measure.tokens, {}, may_switch=False)


def _agent(session: Session, past: RecordedRequest) -> Agent | None:
    """Return an agent with the request's model, or None if that model is no longer configured.

    The model's capabilities are those of the current configuration, because requests do not record them.
    """
    own = replace(presets.own(session), provider=past.made.provider, model=past.made.model)
    try:
        return registry().build_agent(own)
    except AgentError:
        return None


def _measure(laid: list[Block], around: float, past: RecordedRequest) -> Measure:
    rows = ChatMessage.objects.filter(session=past.made.session_id, response_id=past.made.response_id)
    read = rows.filter(input_tokens__isnull=False).values_list("input_tokens", flat=True).first()
    estimate = around + sum(block.tokens for block in laid)
    return correct(estimate, estimate, read)


def _counts(past: RecordedRequest, new: int) -> Json:
    """Return the number of rows that have changed since the request, by kind of change."""
    found = Counter(since(row, past.now[row.pk]) for row in past.rows)
    counts = {kind.value: found[kind] for kind in Since if kind}
    return {**counts, "new": new, "lost": len(past.lost), "any": any([*counts.values(), new, past.lost])}


def _mark_changes(view: BlockView, past: RecordedRequest) -> BlockView:
    then = {row.pk: row for row in past.rows}
    return replace(view, lines=tuple(_mark(line, then[line.id], past.now[line.id]) for line in view.lines))


def _mark(line: LineView, then: ChatMessage, now: ChatMessage) -> LineView:
    """Return a line with the kind of its change since the request, and its current text if it was edited."""
    if not (found := since(then, now)):
        return line
    text = text_of_row(now, is_result=line.kind == "result")
    return replace(line, since=found.value, now=Excerpt.of(text) if found == Since.EDITED else None)
