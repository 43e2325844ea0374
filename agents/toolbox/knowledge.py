"""Tools that search and read the workspace's knowledge: files that users have chosen for the session or its agent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Annotated

from pydantic import Field

from agents.errors import ToolError
from agents.foreign_text import ForeignText
from agents.i18n import gettext as _
from agents.knowledge import File, Knowledge, Passage
from agents.safe_text import clean, cut
from agents.sources import SourceNumbers
from agents.tools import NO_CONTEXT, Tool, ToolContext, tool

TIME_LIMIT = 30.0
MAX_QUERY_LENGTH = 400
# The most that one call returns: passages of a search, and passages and characters of a file that is read.
FOUND = 8
MAX_READ = 40
MAX_CHARACTERS = 30_000
# The most files that the description of the tool lists.
MAX_NAMED = 100
FileName = Annotated[str, Field(max_length=255, description="Name of a file, exactly as listed")]


@tool(time_limit=TIME_LIMIT, foreign=True, about=_("Searches the knowledge that the session uses"))
async def search_knowledge(
    query: Annotated[
        str,
        Field(
            min_length=1,
            max_length=MAX_QUERY_LENGTH,
            description=f"Words that the passage is likely to contain, at most {MAX_QUERY_LENGTH} characters",
        ),
    ],
    file: Annotated[str, Field(max_length=255, description="Name of the file to search; empty: all files")] = "",
    context: ToolContext = NO_CONTEXT,
) -> ForeignText | str:
    """Search the files that the team has given you. Returns numbered passages, the best first.

    In your answer, cite a passage by its number in square brackets, such as [1] or [1][3], directly behind what it
    supports.
    """
    found = await _knowledge(context).search(query, FOUND, file)
    if not found:
        return "No passage has any of these words. Search for other words."
    return _as_text([], found, context)


@tool(time_limit=TIME_LIMIT, foreign=True, about=_("Reads files of the knowledge that the session uses"))
async def read_knowledge(
    file: FileName,
    passage: Annotated[int, Field(ge=1, description="Passage to start at")] = 1,
    context: ToolContext = NO_CONTEXT,
) -> ForeignText | str:
    """Read a file that the team has given you, passage by passage. A long file says how to read on.

    In your answer, cite a passage by its number in square brackets, such as [1], directly behind what it supports.
    """
    found = _fitting(await _knowledge(context).read(file, passage, MAX_READ))
    if not found:
        raise ToolError(f"{file} has no passage {passage}.")
    first, last, count = found[0].number, found[-1].number, found[0].file.passages
    head = f"Passages {first} to {last} of {count}."
    return _as_text([f"{head} Read on with passage={last + 1}." if last < count else head], found, context)


def knowledge_tools(files: Sequence[File]) -> tuple[Tool, ...]:
    """Return the tools for these files, or () without files. The description of the first tool lists the files."""
    if not files:
        return ()
    names = [f"- {clean(each.name)}" for each in files[:MAX_NAMED]]
    if len(files) > MAX_NAMED:
        names.append(f"- and {len(files) - MAX_NAMED} more")
    listed = "\n".join([search_knowledge.description, "", "The files:", *names])
    return replace(search_knowledge, description=listed), read_knowledge


def _knowledge(context: ToolContext) -> Knowledge:
    if context.knowledge is None:
        raise ToolError("No files are chosen for this session.")
    return context.knowledge


def _fitting(passages: Sequence[Passage]) -> list[Passage]:
    """Return the first passages that fit into a result, but at least one."""
    fitting = list[Passage]()
    room = MAX_CHARACTERS
    for passage in passages:
        if fitting and len(passage.text) > room:
            break
        fitting.append(passage)
        room -= len(passage.text)
    return fitting


def _as_text(head: Iterable[str], found: Iterable[Passage], context: ToolContext) -> ForeignText:
    """Return the text of passages, each with the number by which it can be cited."""
    numbers = context.sources or SourceNumbers()
    parts, sources, names = [*head], [], dict[str, None]()
    for each in found:
        source = numbers.number(each.title, each.address)
        sources.append(source)
        names[each.file.name] = None
        parts.append(f"[{source.number}] {each.title}, passage {each.number}\n{cut(each.text, MAX_CHARACTERS)}")
    return ForeignText("\n\n".join(parts), ", ".join(names), tuple(sources))
