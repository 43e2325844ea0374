"""Random scripts for a model, with everything that a response may contain, in any order."""

from __future__ import annotations

from hypothesis import strategies as st

from agents.errors import AuthenticationFailed, ConnectionLost
from agents.events import ReasoningDelta, Usage
from agents.messages import ToolCall
from agents.providers.scripted import HangUp, Reply, Sign, Step, Stop

words = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=6)
counts = st.none() | st.integers(0, 10_000)


@st.composite
def tool_calls(draw: st.DrawFn) -> ToolCall:
    name = draw(st.sampled_from(["double", "broken", "nobody", "risky", "confirmation"]))
    if name in ("risky", "confirmation"):
        arguments = {"question": draw(words)} if name == "confirmation" else {}
        return ToolCall(draw(st.sampled_from(["", "c", "call_0"])), name, arguments)
    n = draw(st.integers(-5, 5))
    raw = draw(st.sampled_from(["", f'{{"n":{n}}}', f'{{ "n" : {n} }}']))
    return ToolCall(draw(st.sampled_from(["", "c", "call_0"])), name, {"n": n}, raw)


steps: st.SearchStrategy[Step] = st.one_of(
    words,
    words.map(ReasoningDelta),
    st.sampled_from([{"signature": "abc="}, {"redacted": "xyz="}]).map(Sign),
    tool_calls(),
    st.builds(Usage, counts, counts, counts, counts),
    st.sampled_from([Stop("max_tokens"), Stop("refusal"), Stop("pause")]),
)
ends: st.SearchStrategy[list[Step]] = st.one_of(
    st.just([]),
    st.just([]),
    st.just([]),
    st.sampled_from([HangUp(), ConnectionLost("Gone."), AuthenticationFailed("Wrong key.")]).map(lambda end: [end]),
)
replies: st.SearchStrategy[Reply] = st.builds(lambda said, end: [*said, *end], st.lists(steps, max_size=7), ends)
scripts = st.lists(replies, min_size=1, max_size=4)
