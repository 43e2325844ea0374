"""Lists of an MCP server without their invalid items, so that one of these does not cost the others."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mcp.shared.dispatcher import CallOptions
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp_types import PaginatedRequestParams
from mcp_types.methods import parse_server_result
from pydantic import ValidationError

from agents.i18n import gettext as _
from agents.mcp.calls import CALL, readable_result
from agents.messages import Json
from agents.safe_text import clean

# The methods that list something, and the key of the list in their results.
TOOLS = "tools/list"
LISTS = {TOOLS: "tools", "resources/list": "resources", "prompts/list": "prompts"}
# The field that identifies an item in requests to the server.
KEYS = {TOOLS: "name", "resources/list": "uri", "prompts/list": "name"}
# Fields without which an item cannot be used.
NEEDED = frozenset({"name", "inputSchema", "uri", "arguments"})
MAX_NAME_LENGTH = 100
MAX_PROBLEM_LENGTH = 200
# The character that replaces those that cannot be stored (`unstorable`).
REPLACEMENT = "\ufffd"
MAX_PAGES = 20
# The most items that are kept and named in the log.
MAX_NAMED = 20


@dataclass(frozen=True, slots=True)
class Skipped:
    """An invalid item of a list. `name` is its number in the list if it has no name."""

    name: str
    problem: str


class ListsDispatcher(JSONRPCDispatcher):
    """Sends requests, and removes invalid items from lists, because the SDK refuses a list that contains one.

    It also removes items that cannot be requested, or not be distinguished from an earlier item of the list. In results
    of calls, it replaces invalid parts.
    """

    def __init__(self, incoming: Any, outgoing: Any) -> None:
        super().__init__(incoming, outgoing)
        self._version = ""
        self._skipped: dict[str, list[Skipped]] = {}
        # The items in each list so far, by their keys.
        self._known: dict[str, dict[str, Any]] = {}

    def skipped(self, method: str = TOOLS) -> tuple[Skipped, ...]:
        """Return what was removed from the list that was read last."""
        return tuple(self._skipped.get(method, ()))

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None, **options: Any
    ) -> dict[str, Any]:
        result = await super().send_raw_request(method, params, opts, **options)
        if method == "initialize":
            self._version = str(result.get("protocolVersion"))
        elif method == CALL:
            return readable_result(self._version, result)
        elif isinstance(items := result.get(LISTS.get(method, "")), list):
            if (params or {}).get("cursor") is None:  # the first page; the protocol allows "" as a cursor of others
                self._skipped[method], self._known[method] = [], {}
            return {**result, LISTS[method]: self._valid(method, items)}
        return result

    def _valid(self, method: str, items: list[Any]) -> list[Any]:
        skipped, kept = self._skipped.setdefault(method, []), []
        known = self._known.setdefault(method, {})
        for number, item in enumerate(items, 1):
            try:
                checked = self._checked(method, item)
            except ValidationError as error:
                problem = problem_of(error, inside=2)
            except (KeyError, ValueError):  # a version that has no such list: the session decides
                return items
            else:
                key = checked[KEYS[method]]
                if checked == known.get(key):  # a page that the server has sent again
                    continue
                if not (problem := _problem_of_key(KEYS[method], key, known)):
                    known[key] = checked
                    kept.append(checked)
            if problem and len(skipped) < MAX_NAMED:
                skipped.append(Skipped(_name_of(item, number), problem))
        return kept

    def _checked(self, method: str, item: Any) -> Any:
        """Return a valid item, without optional fields that are invalid. Raise ValidationError."""
        try:
            parse_server_result(method, self._version, {LISTS[method]: [item]})
        except ValidationError as error:
            wrong = {place[2] for each in error.errors() if len(place := each["loc"]) > 2}
            if not isinstance(item, dict) or not wrong or wrong & NEEDED:
                raise
            item = {key: value for key, value in item.items() if key not in wrong}
            parse_server_result(method, self._version, {LISTS[method]: [item]})
        return item


async def all_pages(ask: Callable[..., Any], items: Callable[[Any], list[Any]], most: int) -> list[Any]:
    """Return the items of a list, from up to MAX_PAGES pages and `most` items at most.

    A cursor that a server has sent before ends the list, because it would lead to the same pages again.
    """
    found: list[Any] = []
    cursor: str | None = None
    cursors: set[str | None] = {None}
    for _page in range(MAX_PAGES):
        page = await ask(params=PaginatedRequestParams(cursor=cursor))
        found += items(page)
        cursor = page.next_cursor
        if cursor in cursors or len(found) >= most:
            break
        cursors.add(cursor)
    return found[:most]


def named(skipped: Iterable[Skipped]) -> str:
    """Return skipped items in one line, for the log."""
    return "; ".join(f"{each.name} ({each.problem})" for each in skipped)


def problem_of(error: ValidationError, inside: int = 0) -> str:
    """Return in one line where and why a result is invalid. Leave out the first `inside` parts of the place."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    place = ".".join(str(part) for part in first["loc"][inside:])
    return _line(f"{place}: {first['msg']}" if place else first["msg"], MAX_PROBLEM_LENGTH)


def _problem_of_key(field: str, key: str, known: Container[str]) -> str:
    """Return why a valid item cannot be used because of its name or URI, or "" if it can."""
    if REPLACEMENT in key:  # the server knows the item by another key, which cannot be stored
        return _("{field}: Contains characters that are not valid", field=field)
    return _("{field}: Another item of the list has it, too", field=field) if key in known else ""


def _name_of(item: Json | Any, number: int) -> str:
    name = item.get("name") if isinstance(item, dict) else None
    return (_line(name, MAX_NAME_LENGTH) if isinstance(name, str) else "") or f"number {number}"


def _line(text: str, longest: int) -> str:
    return " ".join("".join(each if each.isprintable() else " " for each in clean(text)).split())[:longest]
