"""What a browser reports while a user works on the page: errors, warnings, and CSP violations."""

from __future__ import annotations

from playwright.async_api import ConsoleMessage, Page

# The browser itself reports a lost connection; other tests check the page's own notice of it.
EXPECTED = ("ERR_INTERNET_DISCONNECTED", "ERR_CONNECTION_REFUSED", "ERR_CONNECTION_RESET", "WebSocket connection to")
# Checked before any module has run: what scripts add to an element later was not part of the served page.
AS_SERVED = """document.addEventListener("readystatechange", () => {
    const isInline = ({ name, value }) => name === "style" || name.startsWith("on") || /^\\s*javascript:/i.test(value);
    const check = (root) => {
        for (const element of root.querySelectorAll("*")) {
            const isCode = element.matches("style, script:not([src], [type='application/json'])");
            const isForbidden = isCode || [...element.attributes].some(isInline);
            if (isForbidden) console.error("Inline:", element.outerHTML.slice(0, 200));
            if (element.content instanceof DocumentFragment) check(element.content);
        }
    };
    check(document);
}, { once: true })"""


def heed(page: Page, *expected: str) -> list[str]:
    """Return a list that collects what the page's console and scripts report, except for expected texts."""
    complaints: list[str] = []
    known = (*EXPECTED, *expected)

    def said(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not any(words in message.text for words in known):
            complaints.append(message.text)

    page.on("console", said)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    return complaints
