"""The rules of an agent for approvals as lines of a form."""

from __future__ import annotations

from collections.abc import Iterable

from django.utils.translation import gettext as _

from agents.approval import APPROVERS, PLAIN, ParsedRule, Rules, parse_rule
from chat.errors import Invalid

KINDS = ("deny", "ask", "allow")
MAX_LINES = 100


def lines_of(rules: Rules) -> dict[str, list[str]]:
    """Return rules as lines by their kind. A rule that needs several people is `rule | approvals | approvers`."""
    return {
        "deny": list(rules.deny),
        "ask": [*rules.ask, *map(_line, rules.guarded)],
        "allow": list(rules.allow),
    }


def rules_from(*, deny: Iterable[str] = (), ask: Iterable[str] = (), allow: Iterable[str] = ()) -> Rules:
    """Parse what `lines_of` returns. Raise Invalid."""
    kinds = (("deny", deny), ("ask", ask), ("allow", allow))
    read = {kind: [_parse_line(line) for line in lines] for kind, lines in kinds}
    if sum(map(len, read.values())) > MAX_LINES:
        raise Invalid(_("An agent can have up to %(count)d rules.") % {"count": MAX_LINES})
    for each in (*read["deny"], *read["allow"]):
        if each.needs != PLAIN:
            raise Invalid(_("Only rules that ask first can require several approvals, or those of a role."))
    return Rules(
        allow=tuple(each.rule for each in read["allow"]),
        ask=tuple(each.rule for each in read["ask"] if each.needs == PLAIN),
        deny=tuple(each.rule for each in read["deny"]),
        guarded=tuple(each for each in read["ask"] if each.needs != PLAIN),
    )


def _line(parsed: ParsedRule) -> str:
    return " | ".join(filter(None, (parsed.rule, str(parsed.needs.approvals), parsed.needs.approvers)))


def _parse_line(line: str) -> ParsedRule:
    rule, approvals, approvers = line, "1", ""
    parts = line.rsplit(" | ", 2)
    if len(parts) == 3 and parts[2].strip() in APPROVERS:
        rule, approvals, approvers = parts[0], parts[1], parts[2].strip()
    elif len(parts) > 1 and parts[-1].strip().isdigit():
        rule, approvals = line.rsplit(" | ", 1)
    try:
        return parse_rule(rule, int(approvals), approvers)
    except ValueError:
        words = _("“%(rule)s” isn’t a valid rule. Enter a tool’s name, or one with a pattern, such as bash(ls *).")
        raise Invalid(words % {"rule": line[:80]}) from None
