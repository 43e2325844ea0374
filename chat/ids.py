"""Server-made opaque ids: a letter for the kind, then 24 random hex digits (MSG-02)."""

import secrets


def session_id() -> str:
    return "s_" + secrets.token_hex(12)


def message_id() -> str:
    return "m_" + secrets.token_hex(12)


def turn_id() -> str:
    return "t_" + secrets.token_hex(12)


def response_id() -> str:
    return "r_" + secrets.token_hex(12)


def attachment_id() -> str:
    return "a_" + secrets.token_hex(12)


def suggestion_id() -> str:
    return "e_" + secrets.token_hex(12)


def attempt_id() -> str:
    return "v_" + secrets.token_hex(12)


def worker_id() -> str:
    return "w_" + secrets.token_hex(12)


def may_be_one(text: object) -> bool:
    """Return whether a text has the form of an id. Databases reject some others, such as NUL characters."""
    return isinstance(text, str) and text.isascii() and text.isprintable()
