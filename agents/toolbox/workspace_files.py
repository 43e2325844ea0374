"""The tools that read, write, list, search and edit files of the session's folder."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from agents.errors import ToolError
from agents.foreign_text import ForeignText
from agents.i18n import gettext as _
from agents.sandbox.command import Sandbox
from agents.sandbox.files import SECONDS, work_on_files
from agents.tools import NO_CONTEXT, ToolContext, tool

TIME_LIMIT = SECONDS + 30
GLOB = (
    "Pattern of names in all folders, such as *.py, or of paths below the folder, such as src/**/*.{js,ts}. "
    "**/ stands for any number of folders, or none; * and ? do not match /"
)
Path = Annotated[str, Field(max_length=4096, description="Path in the session's folder, such as src/main.py")]


def sandbox_of(context: ToolContext) -> Sandbox:
    """Return the session's sandbox. Raise ToolError if there is none."""
    if context.sandbox is None:
        raise ToolError("There are no session files here.")
    return context.sandbox


@tool(time_limit=TIME_LIMIT, foreign=True, about=_("Reads the session’s files"))
async def read_file(
    path: Path,
    offset: Annotated[int, Field(ge=1, description="Line to start at")] = 1,
    limit: Annotated[int, Field(ge=1, description="How many lines")] = 2000,
    context: ToolContext = NO_CONTEXT,
) -> str:
    """Read a text file of the session's folder. A long file says how to read on."""
    return await work_on_files(sandbox_of(context), "read", path=path, offset=offset, limit=limit)


@tool(time_limit=TIME_LIMIT, parallel=False, about=_("Creates and replaces files of the session"))
async def write_file(
    path: Path,
    content: Annotated[str, Field(max_length=5_000_000, description="The whole text of the file")],
    context: ToolContext = NO_CONTEXT,
) -> str | ForeignText:
    """Write a text file to the session's folder. Missing folders are made; a file of this name is replaced."""
    done = await work_on_files(sandbox_of(context), "write", path=path, content=content)
    context.files_changed()
    has_diff = "\n\n--- " in done  # it contains lines of the replaced file
    return ForeignText(done, origin="write_file") if has_diff else done


@tool(time_limit=TIME_LIMIT, foreign=True, about=_("Lists the session’s files"))
async def list_files(
    path: Path = ".",
    glob: Annotated[str, Field(max_length=500, description=GLOB)] = "",
    context: ToolContext = NO_CONTEXT,
) -> str:
    """List the files and folders below a folder of the session. Files that people attach are in attachments/."""
    return await work_on_files(sandbox_of(context), "list", path=path, glob=glob)


@tool(time_limit=TIME_LIMIT, foreign=True, about=_("Searches the session’s files"))
async def search_files(
    pattern: Annotated[str, Field(min_length=1, max_length=2_000, description="Python regular expression")],
    path: Path = ".",
    context: ToolContext = NO_CONTEXT,
) -> str:
    """Find lines that match a pattern in the session's text files, with file and line number."""
    return await work_on_files(sandbox_of(context), "search", pattern=pattern, path=path)


@tool(time_limit=TIME_LIMIT, parallel=False, about=_("Changes files of the session"))
async def edit_file(
    path: Path,
    old: Annotated[str, Field(min_length=1, description="Text to replace, exactly as in the file; it must occur once")],
    new: Annotated[str, Field(description="Text to put in its place")],
    context: ToolContext = NO_CONTEXT,
) -> str:
    """Replace a piece of text in a file of the session's folder."""
    done = await work_on_files(sandbox_of(context), "edit", path=path, old=old, new=new)
    context.files_changed()
    return done


FILE_TOOLS = (read_file, write_file, list_files, search_files, edit_file)
