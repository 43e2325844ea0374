"""Names of environment variables that contain API keys. A key that is written in place of the name is not shown."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

# `agents.config_errors` reports errors of this type without the value.
NOT_A_NAME = "not_a_name_of_a_variable"


def _variable_name(value: str) -> str:
    if value and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,59}", value):
        raise PydanticCustomError(
            NOT_A_NAME, "must be the name of the environment variable that contains the key, not the key itself"
        )
    return value


KeyVariable = Annotated[str, AfterValidator(_variable_name)]


def not_set(name: str) -> str:
    """Return a sentence which says that a variable is not set. A name in lower case may be a key, so it is not shown.

    Keys of some vendors have only letters and digits.
    """
    if name == name.upper():
        return f"the environment variable {name} is not set"
    return "the environment variable that it names is not set (it must be a name, not the key itself)"
