"""Read a Dockerfile: its stages with their instructions."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Stage:
    """A stage of a build."""

    base: str
    instructions: list[tuple[str, str]] = field(default_factory=list)

    def all(self, name: str) -> list[str]:
        return [value for instruction, value in self.instructions if instruction == name]

    def last(self, name: str) -> str:
        return self.all(name)[-1]

    def command(self, name: str) -> list[str]:
        """Return a command in exec form, because a shell would not pass signals on.

        Raise ValueError for another form.
        """
        words: list[str] = json.loads(self.last(name))
        return words

    def environment(self) -> dict[str, str]:
        words = [word for value in self.all("ENV") for word in shlex.split(value)]
        return {name: value for name, _, value in (word.partition("=") for word in words)}


def stages(path: Path) -> list[Stage]:
    text = "\n".join(line for line in path.read_text().splitlines() if not line.startswith("#"))
    found: list[Stage] = []
    for line in re.sub(r"\\\n\s*", "", text).splitlines():
        if not line.strip():
            continue
        name, _, value = line.partition(" ")
        if name == "FROM":
            found.append(Stage(value.split()[0]))
        else:
            found[-1].instructions.append((name, value.strip()))
    return found
