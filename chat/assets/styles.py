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
        "question",
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
    )
)
# Of what opens at a button or a key: `late` in static/js/ui/late.js loads them.
LATE = tuple(f"css/{name}.css" for name in ("palette", "panel", "context", "files", "history", "transfer", "schedules"))
# Where static files are prepared, each group is one file: small ones cost more by their number than by their size.
ALL = "css/all.css"
ALL_LATE = "css/late.css"
