"""The English texts of the demo agent. The module `chinese` has their translations."""

from __future__ import annotations

from textwrap import shorten

from agents.messages import ToolCall, ToolResult

# The most characters of a call's arguments in the answer after it.
MAX_ARGUMENTS_LENGTH = 80
# The beginning of the instructions in a request for a summary, and the most lines and characters that a summary has.
SUMMARIZER = "You summarize conversations"
MAX_SAID = 8
MAX_SAID_LENGTH = 120
SUMMARY = """\
A summary by the demo agent, which only lists what people wrote:

{lines}
"""
HELP = """\
Hello! I am Parley's **demo agent**: a script, not an AI model. I look for a keyword in your message and reply with a \
prepared answer, so you can try Parley without an API key.

Try one of these:

| Write | To see |
| --- | --- |
| `markdown` | a table, lists, formulas, and code in several languages, streamed |
| `think` | reasoning before the answer |
| `tools` | three tool calls in one response |
| `calculate 2 ** 64 / 3` | the calculator |
| `ask` | questions that people answer: a form and a choice |
| `plan` | a plan that people approve, change or reject |
| `bash ls -la` | a command in the sandbox, if the agent has the tool `bash` |
| `draft plan.md` | a file that you see grow, if the agent has the tool `write_file` |
| `mcp` | tools of an MCP server: dice, a chart, and one that reports its progress |
| `find …` | passages of the workspace's files, cited, if the session uses some |
| `slow` | an answer that takes twenty seconds: stop it, or send another message while it runs |
| `long` | an answer with many sections |
| `error`, `error mid`, `error busy` | a rejected request, a lost connection, an overloaded provider |
| `echo …` | your own text |
| `who` | who sent the message, in a shared session |

**To use a real model**, stop Parley, set one of these environment variables and start it again:

```bash
export ANTHROPIC_API_KEY=…                          # Claude
export OPENAI_API_KEY=…                             # OpenAI
export OPENAI_BASE_URL=http://localhost:11434/v1    # any compatible server, such as Ollama or vLLM
```
"""

SEEN = """\
I received these files with your message:

{files}

A real model would now read them.
"""
SEEN_FILE = "**{name}** ({about})"
READ_FILE = "**{name}** ({count} words)"

MARKDOWN = '''\
## Markdown examples

Text may be **bold**, *italic*, ~~struck~~, `code`, or a [link](https://commonmark.org/).

| Language | Released | Typing | Known for |
| --- | ---: | :---: | --- |
| Python | 1991 | dynamic | readability |
| TypeScript | 2012 | static | the web at scale |
| Rust | 2015 | static | memory safety |
| SQL | 1974 | static | outliving them all |

### Lists

1. A numbered item
   - a nested item
   - another nested item
2. The next number

> A block quote.

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

Euler's identity $e^{i\\pi} + 1 = 0$ fits into a line; larger formulas have their own:

$$
\\int_{-\\infty}^{\\infty} e^{-x^2} \\, dx = \\sqrt{\\pi}
\\qquad
\\begin{pmatrix} a & b \\\\ c & d \\end{pmatrix}^{-1}
= \\frac{1}{ad - bc} \\begin{pmatrix} d & -b \\\\ -c & a \\end{pmatrix}
$$

---

中文、日本語、العربية and 🎉 work too.
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

BEFORE_TOOLS = "I will check the time and do two calculations in parallel."
BEFORE_CALCULATOR = "Let me calculate that."
BEFORE_QUESTIONS = "I need to know a few things first."
BEFORE_PLAN = "This is what I would do. Should I?"
LUNCH = {
    "title": "Order lunch",
    "description": "Nothing is really ordered.",
    "fields": [
        {"id": "name", "label": "Name of the order", "required": True, "default": "Friday lunch"},
        {"id": "people", "label": "How many people?", "type": "number", "required": True},
        {"id": "day", "label": "Day", "type": "date"},
        {"id": "food", "label": "Food", "type": "choice", "options": ["Pizza", "Noodles", "Salad"]},
        {"id": "diets", "label": "Diets", "type": "choices", "options": ["Vegetarian", "Vegan", "Gluten-free"]},
        {"id": "wishes", "label": "Wishes", "type": "long_text", "help": "Allergies, for example"},
    ],
    "submit": "Order",
}
PAYMENT = {
    "question": "Who pays?",
    "choices": [
        {"id": "each", "label": "Everyone for themselves"},
        {"id": "team", "label": "The team", "description": "From this month’s budget"},
    ],
}
PLAN = {
    "title": "Move the website",
    "plan": "1. Copy the database\n2. Switch the address\n3. **Delete** the old server after a week",
}
NO_TOOLS = "This agent has no tools to call. Add `current_time` and `calculator` to it in the configuration."
BEFORE_MCP = "I call three tools of the example MCP server."
NO_MCP = "This agent has no tools of the example MCP server. docs/mcp.md says how to add servers."
BEFORE_FIND = "I search the files of this workspace."
NO_FIND = "This session uses no files. Choose some in its details, under **Knowledge**, and write `find` again."
FOUND = "These passages fit your words best:\n\n{found}\n\nA real model would now answer from them."
BEFORE_BASH = "I will run this command in the sandbox."
BEFORE_DRAFT = "I will write a file. You see it while I write it; then it is in the panel, under Files."
NO_DRAFT = (
    "This agent cannot write files. Add `write_file` to its tools in the configuration; docs/sandbox.md says how."
)
FILE = """\
# Moving to the new server

1. Stop the old server, and wait until its last request is answered.
2. Copy the database, and compare the number of rows.
3. Start the new server beside the old one.
4. Ask it for a page that you know, and look at its log.
5. Change the address, and keep the old server for a week.

If something is wrong at step 4, nothing has changed for anyone: start the old server again.

Ask a colleague to read this list with you before you begin. Two people see more than one, and you will want someone
to call when the log shows what you did not expect.
"""
NO_BASH = "This agent cannot run commands. Add `bash` to its tools in the configuration; docs/sandbox.md says how."
TOOL_ANSWER = "Results of the tools:\n\n{results}\n"
FAILED = " (failed)"
ROUND_LIMIT = "This turn has reached its limit of tool rounds, so I stop here. The results so far are above."

BEFORE_ERROR = "This answer starts normally, but in the middle of a sentence the connection is"
ERROR = "This is a demo error that you asked for. Nothing is broken; send another message."
ERROR_MID = "This is a demo error in the middle of an answer. Nothing is broken; send another message."
ERROR_BUSY = "This is a demo error of an overloaded provider. Nothing is broken; send another message."

SLOW = """\
This answer takes about twenty seconds. While it is being written, you can press Stop: the text so far is kept. You \
can reload the page: the answer continues where it was. You can open the session in another window, or a colleague \
can: both of you see the same text at the same time. You can also send your next message now: it waits in the queue \
until this answer is complete, and nothing is lost.
"""

NOTHING_TO_ECHO = "Nothing to repeat. Write some text after `echo`."
WHO = "This message is from **{speaker}**. In a shared session the model receives the name of each sender."
WHO_UNKNOWN = "You are the only person in this session, so your name is not sent to the model."

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


def result_line(call: ToolCall, result: ToolResult, failed: str = FAILED) -> str:
    """Return the line of the answer that shows a tool call and its result. `failed` marks an error."""
    asked = call.arguments.get("title") or call.arguments.get("question")
    if asked:
        return f"- **{asked}** {result.content}"
    arguments = shorten(
        ", ".join(str(value) for value in call.arguments.values()), MAX_ARGUMENTS_LENGTH, placeholder=" …"
    )
    state = failed if result.is_error else ""
    if "\n" in result.content:
        return f"- `{call.name}({arguments})`{state}:\n\n```\n{result.content.replace('```', '` ` `')}\n```\n"
    return f"- `{call.name}({arguments})`{state}: {result.content}"
