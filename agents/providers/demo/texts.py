"""What the demo agent says."""

from __future__ import annotations

from agents.messages import ToolCall, ToolResult

HELP = """\
Hello! I am Parley's **demo agent**. I am a script, not an AI: I look for a word in your message and play a prepared \
answer, so that you can see how everything here works without a key.

Try one of these:

| Say | and see |
| --- | --- |
| `markdown` | a table, lists, formulas, and code in several languages, streamed |
| `think` | reasoning before an answer |
| `tools` | three tool calls in one response |
| `calculate 2 ** 64 / 3` | the calculator |
| `slow` | twenty seconds of typing: press Stop, or write the next message in the meantime |
| `long` | an answer of many sections |
| `error`, `error mid`, `error busy` | a refused request, a lost connection, a server that is too busy |
| `echo …` | your own words |
| `who` | who is speaking, in a shared session |

**To talk to a real model**, stop Parley, set one of these in its environment and start it again:

```bash
export ANTHROPIC_API_KEY=…                          # Claude
export OPENAI_API_KEY=…                             # OpenAI
export OPENAI_BASE_URL=http://localhost:11434/v1    # any compatible server: Ollama, vLLM, …
```
"""

SEEN = """\
This is what reached me with your message:

{files}

A real model would now look into it.
"""
SEEN_FILE = "I see **{name}** ({about})"
READ_FILE = "I read **{name}** ({count} words)"

HELLO_CHINESE = """\
你好！我是 Parley 的**演示助手**：我只是一段脚本，不是人工智能，会按你消息里的词播放准备好的回答。

可以试试：`表格`、`思考`、`工具`、`计算 2 ** 64 / 3`、`错误`，或者英文的 `slow`、`long`、`echo …`、`who`。

**要使用真正的模型**，请停止 Parley，设置环境变量 `ANTHROPIC_API_KEY`、`OPENAI_API_KEY` 或 `OPENAI_BASE_URL`\
（任何兼容 OpenAI 的服务，例如 Ollama、vLLM），然后重新启动。
"""

MARKDOWN = '''\
## A little of everything

Text may be **bold**, *italic*, ~~struck~~, `code`, or a [link](https://commonmark.org/).

| Language | Born | Typing | Known for |
| --- | ---: | :---: | --- |
| Python | 1991 | dynamic | readability |
| TypeScript | 2012 | static | the web at scale |
| Rust | 2015 | static | memory safety |
| SQL | 1974 | static | outliving them all |

### Lists

1. First things first
   - nested, with a detail
   - and another one
2. Then the rest

> A quotation, for good measure.

### Code

```python
from collections import Counter


def most_common_word(text: str) -> str:
    """Return the word that occurs most often."""
    return Counter(text.lower().split()).most_common(1)[0][0]
```

```typescript
type Message = { id: string; text: string };

export const byId = (messages: Message[]) =>
  new Map(messages.map((message) => [message.id, message]));
```

```rust
fn fibonacci(n: u32) -> u64 {
    (0..n).fold((0, 1), |(a, b), _| (b, a + b)).0
}
```

```sql
SELECT author, count(*) AS messages
FROM chat_message
GROUP BY author
ORDER BY messages DESC;
```

```diff
-    return sorted(words, key=words.count)[-1]
+    return Counter(words).most_common(1)[0][0]
```

### Formulas

Euler's identity $e^{i\\pi} + 1 = 0$ fits into a line; others take one of their own:

$$
\\int_{-\\infty}^{\\infty} e^{-x^2} \\, dx = \\sqrt{\\pi}
\\qquad
\\begin{pmatrix} a & b \\\\ c & d \\end{pmatrix}^{-1}
= \\frac{1}{ad - bc} \\begin{pmatrix} d & -b \\\\ -c & a \\end{pmatrix}
$$

---

中文、日本語、العربية and 🎉 arrive unharmed, too.
'''

THOUGHTS = """\
The user wants to see reasoning. A good example is small: how many handshakes are there when five people all greet \
each other? Everyone shakes four hands, which makes 5 × 4 = 20, but that counts each handshake twice. So 20 / 2 = 10. \
Let me check with three people: 3 × 2 / 2 = 3. Right.
"""

THOUGHT_ANSWER = """\
Five people who all greet each other exchange **10 handshakes**: each of the 5 shakes 4 hands, and every handshake \
was counted twice, so 5 × 4 / 2 = 10.
"""

BEFORE_TOOLS = "I will look at the clock and do two sums at the same time."
BEFORE_CALCULATOR = "Let me calculate that."
NO_TOOLS = "This agent has no tools that I could show. Give it `current_time` and `calculator` in the configuration."
TOOL_ANSWER = "The tools have answered:\n\n{results}\n"
ROUND_LIMIT = "The tool rounds of this turn are used up, so I stop here. Everything above is what I found out."

BEFORE_ERROR = "This answer begins well, and then, in the middle of a sentence, the connection is"
ERROR = "The demo agent was asked to fail, and did. Nothing is broken: write something else."
ERROR_MID = "The demo agent was asked to fail in mid-answer, and did. Nothing is broken: write something else."
ERROR_BUSY = "The demo agent was asked to be too busy, and is. Nothing is broken: write something else."

SLOW = """\
This answer takes its time, about twenty seconds in all. While it is being written you can press Stop, and what is on \
the screen stays there. You can reload the page, and it goes on where it was. You can open the session in another \
window, or let a colleague open it, and both of you see the same words at the same moment. And you can write your \
next message already: it waits in the queue until this one is done, and nothing is lost.
"""

NOTHING_TO_ECHO = "There is no echo without a sound: write something behind the word."
WHO = "This message is from **{speaker}**. In a shared session I am told who speaks."
WHO_UNKNOWN = "You are the only one who speaks here, so no one gave me your name."

_PLACES = ("the harbour", "the library", "the old mill", "the station", "the market", "the observatory")
_WEATHER = ("in fog", "at noon", "in the rain", "by moonlight", "under snow")
_SECTION = """\
### {number}. {title}

A walk to {place} {weather} takes longer than the map suggests. There are {steps} steps from the bridge, and anyone \
who counts them twice gets two different numbers. The keeper says that this is normal.

- bring a lamp
- greet the cat
- note the time: `{hour:02d}:{minute:02d}`
"""


def _section(number: int) -> str:
    place, weather = _PLACES[number % len(_PLACES)], _WEATHER[number % len(_WEATHER)]
    title = f"{place.removeprefix('the ').capitalize()} {weather}"
    clock = {"hour": number * 7 % 24, "minute": number * 13 % 60}
    return _SECTION.format(number=number, title=title, place=place, weather=weather, steps=100 + number * 37, **clock)


LONG = "## Thirty walks\n\n" + "\n".join(_section(number) for number in range(1, 31))


def result_line(call: ToolCall, result: ToolResult) -> str:
    """One line of the answer that follows tool results."""
    arguments = ", ".join(str(value) for value in call.arguments.values())
    state = " (failed)" if result.is_error else ""
    return f"- `{call.name}({arguments})`{state}: {result.content}"
