"""Pages that vendors' models cite by themselves, in each form of an answer."""

from __future__ import annotations

from agents.events import PartDone, ProviderEvent
from agents.messages import Json, Source, Text, ToolCall
from agents.providers.anthropic.stream import AnthropicReader, from_stream
from agents.providers.anthropic.stream import StreamState as AnthropicState
from agents.providers.openai.responses_stream import ResponsesReader
from agents.providers.openai.responses_stream import StreamState as ResponsesState
from agents.providers.openai.stream import OpenAIReader, StreamState
from agents.providers.openai.stream import from_stream as from_chunk
from agents.response import Response

TIDES = Source(0, "Tide tables", "https://tides.example/")


def texts(events: list[ProviderEvent]) -> list[Text]:
    return [event.part for event in events if isinstance(event, PartDone) and isinstance(event.part, Text)]


def test_anthropic_cites_in_deltas_of_a_block() -> None:
    """MSG-08: the text is unchanged, and citations without a web address are not sources."""
    state = AnthropicState("claude")
    citation: Json = {"type": "web_search_result_location", "url": TIDES.url, "title": TIDES.title, "cited_text": "x"}
    document: Json = {"type": "char_location", "document_title": "a.pdf", "cited_text": "x"}
    events = [
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "", "citations": []}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "At noon."}},
        *(
            {"type": "content_block_delta", "index": 0, "delta": {"type": "citations_delta", "citation": each}}
            for each in (citation, document, citation)
        ),
        {"type": "content_block_stop", "index": 0},
    ]
    found = [each for event in events for each in from_stream(event, state)]
    assert texts(found) == [Text("At noon.", sources=(TIDES,))]


def test_blocks_around_a_citation_are_one_text() -> None:
    """RUN-04, MSG-08: the next request has one text, as the rows have, so that its beginning stays the same later."""
    call, item = ToolCall("c", "noop", {}), Text("Bye.", {"item_id": "m_2"})
    response = Response()
    for part in (Text("It is high "), Text("at noon", sources=(TIDES,)), Text("."), call, Text("Then"), item):
        response.take(PartDone(part), "model-1")
    assert response.parts == [Text("It is high at noon.", sources=(TIDES,)), call, Text("Then"), item]


def test_anthropic_cites_in_a_whole_message() -> None:
    reader = AnthropicReader(AnthropicState("claude"))
    block = {"type": "text", "text": "At noon.", "citations": [{"url": TIDES.url, "title": TIDES.title}]}
    assert texts([*reader.feed_whole({"type": "message", "content": [block]})]) == [Text("At noon.", sources=(TIDES,))]


def test_chat_completions_cite_in_annotations() -> None:
    state = StreamState("openai", "gpt-x")
    annotation = {"type": "url_citation", "url_citation": {"url": TIDES.url, "title": TIDES.title, "start_index": 0}}
    for delta in ({"content": "At noon."}, {"annotations": [annotation, {"type": "file_citation"}, 3]}):
        list(from_chunk({"choices": [{"index": 0, "delta": delta}]}, state))
    assert texts([*OpenAIReader(state).finish()]) == [Text("At noon.", sources=(TIDES,))]


def test_responses_cite_in_annotations() -> None:
    annotation = {"type": "url_citation", "url": TIDES.url, "title": TIDES.title}
    content = [{"type": "output_text", "text": "At noon.", "annotations": [annotation]}]
    body = {"status": "completed", "output": [{"type": "message", "content": content}]}
    events = [*ResponsesReader(ResponsesState("openai")).feed_whole(body)]
    assert texts(events) == [Text("At noon.", sources=(TIDES,))]
