"""The context of the next request and of earlier requests, over the API."""

from __future__ import annotations

import base64
from typing import Any, get_args

import pytest
from django.core.files.base import ContentFile

from agents.events import ReasoningDelta
from agents.messages import Json, Message, Text, ToolCall
from agents.providers.base import Request
from agents.providers.forms import FORMS, Form, preview
from agents.providers.scripted import ScriptedProvider, Sign
from chat import agents_setup
from chat.models import Attachment, Session, SessionRun, User
from chat.services.messages import editing
from chat.services.people import members_agents
from chat.services.people.members_agents import AgentSettings
from chat.services.sessions.agents import add_agent
from chat.services.sessions.lifecycle import create_session
from tests.api.asking import Asker, code, token_of
from tests.support.filled import ANSWER, DONE, HI, START, TOOL, fill
from tests.support.testing_node import CONFIG, ScriptedRegistry, TestNode, let_in

TURN = [START, HI, TOOL, ANSWER, DONE]
VISION = {**CONFIG, "providers": {"scripted": {"type": "demo", "vision": True, "models": {"one": {"max_tokens": 99}}}}}


def ask(asker: Asker, session: Session, query: str = "") -> Json:
    answer: Json = asker.get(f"/api/sessions/{session.pk}/context{query}").json()
    return answer


@pytest.mark.parametrize("form", FORMS)
async def test_context_is_what_is_sent_next(node: TestNode, ana: User, form: str) -> None:
    """CTX-01, CTX-02: the next request consists of exactly this context and the new message, with its tools and
    limits."""
    sent: list[Request] = []

    def answer(request: Request) -> list[str]:
        sent.append(request)
        return ["Answer"]

    node.script(answer, VISION)
    session = await node.session(ana)
    asker = Asker(await node.do(token_of, ana))
    for text in ("First", "Second"):
        context = await node.do(ask, asker, session, f"?form={form}")
        await node.send(session, ana, text)
        await node.idle(session)
        body = preview(form, sent[-1], "scripted")
        said = preview(form, Request("one", (Message("user", (Text(text),)),)), "scripted").messages
        assert [*context["messages"], *said] == body.messages
        assert (context["tools"], context["system"]) == (body.tools, body.system)
        assert context["parameters"] == body.parameters
    assert [tool.get("name") or tool["function"]["name"] for tool in context["tools"]] == ["calculator", "current_time"]
    assert 99 in context["parameters"].values()


async def test_reasoning_that_the_next_message_drops_is_not_shown(node: TestNode, ana: User) -> None:
    """CTX-02, MSG-08: after a turn, the shown request has no reasoning that is sent in that turn only.

    While the turn runs, its next request has the reasoning.
    """
    sent: list[Request] = []
    call = ToolCall("c1", "calculator", {"expression": "1 + 1"})

    def answer(request: Request) -> list[Any]:
        sent.append(request)
        thought = [ReasoningDelta("Hm"), Sign({"field": "reasoning_content"}), call]
        return thought if request.messages[-1].text == "First" else ["Answer"]

    node.script(answer, VISION)
    session = await node.session(ana)
    asker = Asker(await node.do(token_of, ana))
    await node.send(session, ana, "First")
    await node.idle(session)
    context = await node.do(ask, asker, session, "?form=openai")
    await node.do(SessionRun.objects.filter(pk=session.pk).update, state="running", turn_id="t_1")
    running = await node.do(ask, asker, session, "?form=openai")
    await node.do(SessionRun.objects.filter(pk=session.pk).update, state="idle", turn_id="")
    await node.send(session, ana, "Second")
    await node.idle(session)
    in_turn, next_one = (preview("openai", request, "scripted").messages for request in sent[1:])
    assert ("reasoning_content" in str(in_turn), "reasoning_content" in str(next_one)) == (True, False)
    assert context["messages"] == next_one[:-1]
    assert running["messages"] == [*in_turn, next_one[-2]]


def test_forms_of_the_description_are_those_that_there_are() -> None:
    """The API description lists exactly the request forms that exist (CTX-02)."""
    assert set(get_args(Form)) == set(FORMS)


@pytest.mark.django_db
def test_nothing_is_added_at_rest(asker: Asker, session: Session) -> None:
    """CTX-02: an empty session has no messages, an idle one ends with the model's answer, and a blank prompt is left
    out."""
    asker.patch(f"/api/sessions/{session.pk}", {"system_prompt": "   "})
    for form in FORMS:
        empty = ask(asker, session, f"?form={form}")
        assert (empty["messages"], empty["system"]) == ([], None)
    fill(session, *TURN)
    openai, responses, anthropic = (ask(asker, session, f"?form={form}")["messages"] for form in FORMS)
    assert [each["role"] for each in openai] == ["user", "assistant", "tool", "assistant"]
    calls = ["function_call", "function_call_output"]
    assert [each.get("role") or each["type"] for each in responses] == ["user", *calls, "assistant"]
    assert [each["role"] for each in anthropic] == ["user", "assistant", "user", "assistant"]
    assert "cache_control" not in str(anthropic)


@pytest.mark.django_db
def test_mode_and_tools_of_the_session_count(asker: Asker, session: Session) -> None:
    """MSG-09: in the mode `chat` there are no tools.

    Anthropic still gets the definitions if the conversation has used tools.
    """
    fill(session, *TURN)
    assert asker.patch(f"/api/sessions/{session.pk}", {"mode": "chat"}).json()["mode"] == "chat"
    assert ask(asker, session, "?form=openai")["tools"] == []
    anthropic = ask(asker, session, "?form=anthropic")
    assert [tool["name"] for tool in anthropic["tools"]] == ["double"]
    assert anthropic["parameters"]["tool_choice"] == {"type": "none"}


@pytest.mark.django_db
@pytest.mark.usefixtures("own_files")
def test_files_say_what_becomes_of_them(asker: Asker, ana: User) -> None:
    """CTX-02: models that accept images get images, and text files become text. Bytes are returned only on request."""
    agents_setup.install(ScriptedRegistry(ScriptedProvider([]), VISION))
    session = create_session(owner=ana)
    row = fill(session, *TURN)[1]
    for name, kind, text in (("cat.png", "image", ""), ("a.txt", "text", "Words"), ("b.pdf", "pdf", "")):
        file = Attachment(session=session, message=row, user=ana, name=name, kind=kind, text=text, size=4)
        file.width = file.height = 1
        file.media_type = {"image": "image/png", "text": "text/plain", "pdf": "application/pdf"}[kind]
        file.file.save(name, ContentFile(b"\x89PNG"))
    context = ask(asker, session)
    assert [(each["name"], each["sent_as"]) for each in context["files"]] == [
        ("cat.png", "image"),
        ("a.txt", "text"),
        ("b.pdf", "name"),
    ]
    assert "not shown" in context["files"][2]["label"]
    assert {each["message_id"] for each in context["files"]} == {row.pk}
    picture = context["files"][0]["id"]
    assert f"data:image/png;base64,attachment:{picture}" in str(context["messages"])
    assert base64.b64encode(b"\x89PNG").decode() in str(ask(asker, session, "?file_data=true")["messages"])


@pytest.mark.django_db
def test_model_that_is_gone_is_a_problem_and_no_failure(asker: Asker, session: Session) -> None:
    """RUN-16: the conversation is shown, with the reason why nothing can be sent."""
    fill(session, *TURN)
    Session.objects.filter(pk=session.pk).update(provider="gone", model="none")
    context = ask(asker, session)
    assert "gone" in context["problem"]
    roles = [each["role"] for each in context["messages"]]
    assert (roles, context["tools"]) == (["system", "user", "assistant", "tool", "assistant"], [])


@pytest.mark.django_db
def test_estimate_says_what_is_left_out(asker: Asker, session: Session) -> None:
    """MSG-09: the estimate has the reason for each excluded message, and its parts add up to the total of tokens."""
    rows = fill(session, *TURN, START, HI, DONE)
    asker.patch(f"/api/sessions/{session.pk}/messages/{rows[1].pk}", {"include_in_context": False})
    estimate = asker.get(f"/api/sessions/{session.pk}/context/estimate").json()
    reasons = {part["message_id"]: part["reason"] for each in estimate["messages"] for part in each["parts"]}
    assert (reasons[rows[1].pk], reasons[rows[3].pk]) == ("left_out", None)
    counted = sum(each["tokens"] for each in estimate["messages"] if each["role"])
    assert estimate["tokens"] == pytest.approx(counted + estimate["system_tokens"] + estimate["tools_tokens"], abs=5)


@pytest.mark.django_db
def test_the_request_to_another_agent(asker: Asker, session: Session, ana: User) -> None:
    """CTX-06: the context of another agent is requested by name, and an agent that is not in the session is refused."""
    row = members_agents.make(
        author=ana, workspace_id=session.workspace_id, given=AgentSettings("Writer", system_prompt="Write verses.")
    )
    refused = asker.get(f"/api/sessions/{session.pk}/context?agent={row.name}")
    assert (refused.status_code, refused.json()["code"]) == (422, "no_such_agent")
    assert asker.get(f"/api/sessions/{session.pk}/context/estimate?agent=%00").status_code == 422
    add_agent(session=session, author=ana, agent=row.name)
    assert "Write verses." in str(ask(asker, session, f"?agent={row.name}&form=anthropic")["system"])
    assert "Write verses." not in str(ask(asker, session, "?form=anthropic")["system"])
    estimates = [
        asker.get(f"/api/sessions/{session.pk}/context/estimate?agent={name}").json()["system_tokens"]
        for name in (row.name, session.agent)
    ]
    assert estimates[0] != estimates[1]


async def test_sent_request_is_read_again(node: TestNode, ana: User, bo: User) -> None:
    """ADM-02: the request is returned as it was sent, despite later edits. Only editors see messages removed since."""
    sent: list[Request] = []

    def answer(request: Request) -> list[str]:
        sent.append(request)
        return ["Answer"]

    node.script(answer)
    session = await node.session(ana)
    await node.do(let_in, session, bo, "viewer")
    for text in ("First", "Second"):
        await node.send(session, ana, text)
        await node.idle(session)
    rows = {row.text: row for row in await node.rows(session)}
    await node.do(editing.edit, session=session, author=ana, message_id=rows["Second"].pk, text="Other")
    await node.do(editing.remove, session=session, author=ana, message_id=rows["First"].pk)
    mine, his = Asker(await node.do(token_of, ana)), Asker(await node.do(token_of, bo))
    address = f"/api/sessions/{session.pk}/requests"
    newest = (await node.do(mine.get, f"{address}?limit=1")).json()
    assert newest["next"] == newest["requests"][0]["response_id"]
    oldest = (await node.do(mine.get, f"{address}?before={newest['next']}")).json()
    assert (len(oldest["requests"]), oldest["next"]) == (1, None)
    again, hidden = [
        (await node.do(asker.get, f"{address}/{newest['next']}?form=openai")).json() for asker in (mine, his)
    ]
    assert again["messages"] == preview("openai", sent[1], "scripted").messages
    assert again["tool_definitions"] == preview("openai", sent[1], "scripted").tools
    assert (hidden["hidden"], "First" in str(hidden["messages"])) == (1, False)
    assert code(await node.do(mine.get, f"{address}/r_none")) == (404, "no_such_request")
