"""Approvals of several users, or of users with a role: the requirement and the decisions (ChatMessage.approval)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from agents.approval import Requirement, parse_rule
from agents.messages import Json


@dataclass(frozen=True, slots=True)
class PersonDecision:
    """The decision of one user, made at the ISO 8601 time `at`.

    `edited`: the user changed the call's arguments, so earlier approvals do not count. `lapsed`: the user may not
    approve the call any more, so this approval does not count.
    """

    user_id: int | None
    name: str
    at: str
    approved: bool
    edited: bool
    lapsed: bool = False

    @classmethod
    def of(cls, value: Any) -> PersonDecision:
        name, at, lapsed = str(value["name"]), str(value["at"]), bool(value.get("lapsed"))
        return cls(value["user_id"], name, at, bool(value["approved"]), value["edited"], lapsed)


@dataclass(frozen=True, slots=True)
class Standing:
    """The approvals that a call needs, and all decisions in order."""

    needs: Requirement
    decisions: tuple[PersonDecision, ...]

    @property
    def approvals(self) -> tuple[PersonDecision, ...]:
        """The approvals that count: those of the current arguments that have not lapsed."""
        given = [each for each in self.decisions if each.approved]
        edits = [place for place, each in enumerate(given) if each.edited]
        return tuple(each for each in given[edits[-1] if edits else 0 :] if not each.lapsed)

    @property
    def lapsed(self) -> tuple[PersonDecision, ...]:
        """The approvals of users who lost the right to give them and have not approved again since."""
        valid = {each.user_id for each in self.approvals}
        lapsed = {each.user_id: each for each in self.decisions if each.approved and each.lapsed}
        return tuple(each for user_id, each in lapsed.items() if user_id not in valid)

    @property
    def outdated(self) -> tuple[PersonDecision, ...]:
        """The approvals of earlier arguments, of users who may still approve and have not approved again since."""
        shown = {each.user_id for each in (*self.approvals, *self.lapsed)}
        given = {each.user_id: each for each in self.decisions if each.approved}
        return tuple(each for user_id, each in given.items() if user_id not in shown)

    @property
    def missing(self) -> int:
        return max(0, self.needs.approvals - len(self.approvals))

    @property
    def approved_by(self) -> set[int]:
        """The ids of the users whose approvals count."""
        return {each.user_id for each in self.approvals if each.user_id is not None}

    def only_of(self, user_ids: Collection[int]) -> Standing:
        """Return the standing in which only the approvals of these users count."""
        lapsed = [each for each in self.approvals if each.user_id not in user_ids]
        decisions = (replace(each, lapsed=True) if each in lapsed else each for each in self.decisions)
        return replace(self, decisions=tuple(decisions))


def standing_of(approval: object) -> Standing | None:
    """Read the column of a row. Return None if anyone who may answer can decide alone, or if the value is invalid."""
    if not isinstance(approval, dict):
        return None
    try:
        needs = parse_rule("*", approval["needed"], approval["approvers"]).needs
        return Standing(needs, tuple(map(PersonDecision.of, approval["decisions"])))
    except (KeyError, TypeError, ValueError):
        return None


def with_decision(
    standing: Standing, *, user_id: int, name: str, at: datetime, approved: bool, edited: bool = False
) -> Json:
    """Return the column with a further decision."""
    decision = PersonDecision(user_id, name, at.isoformat(), approved, edited)
    return column_of(replace(standing, decisions=(*standing.decisions, decision)))


def column_of(standing: Standing) -> Json:
    """Return the value of the column `approval` for a standing."""
    return {
        "needed": standing.needs.approvals,
        "approvers": standing.needs.approvers,
        "decisions": [*map(asdict, standing.decisions)],
        # For queries: the users for whose decision the call does not wait any more.
        "agreed": sorted(standing.approved_by),
    }


def without_person(approval: object, user_id: int, name: str) -> object:
    """Return the column with `name` in place of a user."""
    if standing_of(approval) is None or not isinstance(approval, dict):
        return approval
    decisions = [
        {**each, "user_id": None, "name": name} if each["user_id"] == user_id else each
        for each in approval["decisions"]
    ]
    agreed = [each for each in approval.get("agreed", ()) if each != user_id]
    return {**approval, "decisions": decisions, **({"agreed": agreed} if "agreed" in approval else {})}
