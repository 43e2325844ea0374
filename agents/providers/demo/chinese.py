"""The Chinese texts of the demo agent, for messages that contain Chinese."""

from __future__ import annotations

from agents.messages import Json
from agents.providers.demo import texts

HELP = """\
你好！我是 Parley 的**演示智能体**：我只是一段脚本，不是 AI 模型。我会根据你消息中的关键词，给出预先准备好的回答，\
让你没有 API 密钥也能试用 Parley。

可以试试：

| 输入 | 会看到 |
| --- | --- |
| `表格` | 表格、列表、公式和多种语言的代码，逐字输出 |
| `思考` | 回答之前的推理 |
| `工具` | 一次回答中的三个工具调用 |
| `计算 2 ** 64 / 3` | 计算器 |
| `提问` | 由人回答的问题：一张表单和一个选择 |
| `计划` | 由人批准、修改或拒绝的计划 |
| `命令 ls -la` | 在沙盒中运行的命令（如果智能体有工具 `bash`） |
| `草稿 plan.md` | 一个在你眼前逐步写成的文件（如果智能体有工具 `write_file`） |
| `mcp 演示` | MCP 服务器的工具：骰子、图表，以及一个会报告进度的工具 |
| `查找 …` | 工作区文件中的段落，附引用（如果会话使用了文件） |
| `慢慢说` | 一个要写二十秒的回答：你可以停止它，也可以在此期间发送下一条消息 |
| `长文` | 有许多小节的回答（英文） |
| `错误`、`错误 mid`、`错误 busy` | 被拒绝的请求、中断的连接、过载的服务 |
| `复述 …` | 你自己的文字 |
| `我是谁` | 在共享会话中，消息是谁发的 |

**要使用真正的模型**，请停止 Parley，设置以下环境变量之一，然后重新启动：

```bash
export ANTHROPIC_API_KEY=…                          # Claude
export OPENAI_API_KEY=…                             # OpenAI
export OPENAI_BASE_URL=http://localhost:11434/v1    # 任何兼容的服务，例如 Ollama、vLLM
```
"""
SUMMARY = """\
演示智能体的摘要，只列出大家写过的内容：

{lines}
"""
SEEN = """\
我收到了随消息发来的文件：

{files}

如果是真正的模型，现在就会读取它们。
"""
THOUGHTS = """\
用户想看推理过程。好的例子应该很小：五个人互相握手，一共握多少次？每个人握四次，5 × 4 = 20，\
但每次握手都数了两遍，所以 20 / 2 = 10。用三个人检验：3 × 2 / 2 = 3，正确。
"""
THOUGHT_ANSWER = """\
五个人互相握手，一共 **10 次**：每个人握 4 次，而每次握手都数了两遍，所以 5 × 4 / 2 = 10。
"""
SLOW = """\
这个回答大约要写二十秒。在此期间，你可以按“停止”：已经写出的文字会保留。你可以重新加载页面：\
回答会从原来的地方继续。你可以在另一个窗口打开这个会话，同事也可以：你们同时看到同样的文字。\
你还可以现在就发送下一条消息：它会排队，等这个回答写完，什么都不会丢失。
"""
FILE = """\
# 迁移到新服务器

1. 停止旧服务器，等最后一个请求得到回答。
2. 复制数据库，并比较行数。
3. 启动新服务器，旧服务器先保留。
4. 向它请求一个你熟悉的页面，并查看它的日志。
5. 更改地址，并把旧服务器再保留一周。

如果第 4 步出了问题，对任何人都还没有变化：重新启动旧服务器即可。

开始之前，请一位同事和你一起读这份清单。两个人看到的比一个人多；日志里出现意外时，你也会希望有人可以商量。
"""
_OF_MARKDOWN = {
    "## Markdown examples": "## Markdown 示例",
    "Text may be **bold**, *italic*, ~~struck~~, `code`, or a [link]": (
        "文字可以是**粗体**、*斜体*、~~删除线~~、`代码`或[链接]"
    ),
    "| Language | Released | Typing | Known for |": "| 语言 | 发布 | 类型 | 特点 |",
    "| dynamic | readability |": "| 动态 | 易读 |",
    "| static | the web at scale |": "| 静态 | 大型网页应用 |",
    "| static | memory safety |": "| 静态 | 内存安全 |",
    "| static | outliving them all |": "| 静态 | 比其他语言都长寿 |",
    "### Lists": "### 列表",
    "1. A numbered item": "1. 有编号的一项",
    "- a nested item": "- 嵌套的一项",
    "- another nested item": "- 嵌套的另一项",
    "2. The next number": "2. 下一个编号",
    "> A block quote.": "> 引用的文字。",
    "### Code": "### 代码",
    "Return the word that occurs most often.": "返回出现最多的词。",
    "### Formulas": "### 公式",
    "Euler's identity $e^{i\\pi} + 1 = 0$ fits into a line; larger formulas have their own:": (
        "欧拉恒等式 $e^{i\\pi} + 1 = 0$ 可以写在行内；较大的公式独占一行："
    ),
    "中文、日本語、العربية and 🎉 work too.": "中文、日本語、العربية 和 🎉 也都可以。",
}


def _markdown() -> str:
    made = texts.MARKDOWN
    for english, translated in _OF_MARKDOWN.items():
        made = made.replace(english, translated)
    return made


TEXTS = {
    texts.HELP: HELP,
    texts.SUMMARY: SUMMARY,
    texts.SEEN: SEEN,
    texts.READ_FILE: "**{name}**（{count} 个词）",
    texts.MARKDOWN: _markdown(),
    texts.THOUGHTS: THOUGHTS,
    texts.THOUGHT_ANSWER: THOUGHT_ANSWER,
    texts.BEFORE_TOOLS: "我会查看时间，并同时做两次计算。",
    texts.BEFORE_CALCULATOR: "我来算一下。",
    texts.BEFORE_QUESTIONS: "我需要先了解几件事。",
    texts.BEFORE_PLAN: "我打算这样做，可以吗？",
    texts.NO_TOOLS: "这个智能体没有可以调用的工具。请在配置中为它添加 `current_time` 和 `calculator`。",
    texts.BEFORE_MCP: "我会调用示例 MCP 服务器的三个工具。",
    texts.NO_MCP: "这个智能体没有示例 MCP 服务器的工具。docs/mcp.md 说明如何添加服务器。",
    texts.BEFORE_FIND: "我会搜索这个工作区的文件。",
    texts.NO_FIND: "这个会话没有使用文件。请在会话详情的**知识库**中选择文件，然后再写一次 `查找`。",
    texts.FOUND: "这些段落与你的关键词最相符：\n\n{found}\n\n如果是真正的模型，现在就会根据它们回答。",
    texts.BEFORE_BASH: "我会在沙盒中运行这条命令。",
    texts.NO_BASH: "这个智能体不能运行命令。请在配置中为它添加工具 `bash`；docs/sandbox.md 说明了方法。",
    texts.BEFORE_DRAFT: "我会写一个文件。你可以看着我写；写完后，它会出现在面板的“文件”中。",
    texts.NO_DRAFT: "这个智能体不能写文件。请在配置中为它添加工具 `write_file`；docs/sandbox.md 说明了方法。",
    texts.FILE: FILE,
    texts.TOOL_ANSWER: "工具的结果：\n\n{results}\n",
    texts.FAILED: "（失败）",
    texts.ROUND_LIMIT: "这一轮已达到工具轮数的上限，所以我到此为止。目前的结果在上面。",
    texts.BEFORE_ERROR: "这个回答开始时一切正常，但在句子中间，连接",
    texts.ERROR: "这是你要求的演示错误。其实一切正常，请再发一条消息。",
    texts.ERROR_MID: "这是回答中间的演示错误。其实一切正常，请再发一条消息。",
    texts.ERROR_BUSY: "这是服务过载的演示错误。其实一切正常，请再发一条消息。",
    texts.SLOW: SLOW,
    texts.NOTHING_TO_ECHO: "没有可以复述的内容。请在 `复述` 后面写一些文字。",
    texts.WHO: "这条消息来自 **{speaker}**。在共享会话中，模型会收到每位发送者的名字。",
    texts.WHO_UNKNOWN: "这个会话里只有你一个人，所以你的名字不会发送给模型。",
}
LUNCH: Json = {
    "title": "订午餐",
    "description": "不会真的下单。",
    "fields": [
        {"id": "name", "label": "订单名称", "required": True, "default": "周五午餐"},
        {"id": "people", "label": "几个人？", "type": "number", "required": True},
        {"id": "day", "label": "日期", "type": "date"},
        {"id": "food", "label": "吃什么", "type": "choice", "options": ["披萨", "面条", "沙拉"]},
        {"id": "diets", "label": "饮食要求", "type": "choices", "options": ["素食", "纯素", "无麸质"]},
        {"id": "wishes", "label": "其他要求", "type": "long_text", "help": "例如过敏"},
    ],
    "submit": "下单",
}
PAYMENT: Json = {
    "question": "谁付钱？",
    "choices": [
        {"id": "each", "label": "各付各的"},
        {"id": "team", "label": "团队", "description": "从本月的预算里出"},
    ],
}
PLAN: Json = {"title": "迁移网站", "plan": "1. 复制数据库\n2. 切换地址\n3. 一周后**删除**旧服务器"}
