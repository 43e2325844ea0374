"""The style sheets of static/css, in the order in which they hold."""

EVERYWHERE = tuple(f"css/{name}.css" for name in ("tokens", "base", "layout", "toast"))
# Of a session's page.
STYLES = tuple(
    f"css/{name}.css"
    for name in (
        "rail",
        "header",
        "message",
        "attachments",
        "tool",
        "terminal",
        "content",
        "math",
        "highlight",
        "composer",
        "completion",
        "dialog",
        "menu",
        "actions",
        "print",
        "presence",
        "palette",
        "panel",
        "context",
        "history",
        "transfer",
    )
)
# All sheets in one file, where static files are prepared: small ones cost more by their number than by their size.
ALL = "css/all.css"
