"""The value of `ChatMessage.subsession`: the session in which another agent works on a call."""

from __future__ import annotations

from dataclasses import dataclass

from agents.messages import Json


@dataclass(frozen=True, slots=True)
class Wait:
    """What a session waits for from people, itself or for an agent below it: "approval", "answer" or "".

    `agreed` are the ids of the users who have approved all waiting calls, so that it waits for other users.
    """

    kind: str = ""
    agreed: tuple[int, ...] = ()

    @classmethod
    def of(cls, subsession: Json) -> Wait:
        """Return the wait that is stored in a call's `subsession`."""
        agreed = subsession.get("agreed")
        ids = agreed if isinstance(agreed, list | tuple) else ()
        return cls(str(subsession.get("waits", "")), tuple(each for each in ids if type(each) is int))

    def to_json(self) -> Json:
        return {"waits": self.kind, "agreed": list(self.agreed)}


@dataclass(frozen=True, slots=True)
class SubsessionSnapshot:
    """The session in which another agent works on a call.

    `tokens` and `costs` are its usage, including sessions below it; `tokens` is None while it works.
    """

    id: str
    agent: str
    title: str
    tokens: int | None = None
    costs: tuple[Json, ...] = ()
    wait: Wait = Wait()

    @classmethod
    def from_json(cls, data: object) -> SubsessionSnapshot | None:
        """Return the value of a row's `subsession`, or None if it has another form."""
        if not isinstance(data, dict) or not isinstance(data.get("id"), str):
            return None
        tokens, costs = data.get("tokens"), data.get("costs")
        return cls(
            data["id"],
            str(data.get("agent", "")),
            str(data.get("title", "")),
            tokens if type(tokens) is int else None,
            tuple(costs) if isinstance(costs, list | tuple) else (),
            Wait.of(data),
        )

    def to_json(self) -> Json:
        """Return the value in the form of the row's `subsession`."""
        values = {name: getattr(self, name) for name in ("id", "agent", "title", "tokens", "costs")}
        return {**values, **self.wait.to_json()}
