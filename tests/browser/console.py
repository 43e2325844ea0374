"""What a browser reports while a user works on the page: errors, warnings, and CSP violations."""

from __future__ import annotations

from playwright.async_api import ConsoleMessage, Page, Response

# The browser itself reports a lost connection; other tests check the page's own notice of it.
EXPECTED = (
    "ERR_INTERNET_DISCONNECTED",
    "ERR_CONNECTION_REFUSED",
    "ERR_CONNECTION_RESET",
    "WebSocket connection to",
    "Firefox can’t establish a connection",
    "was interrupted while the page was loading",
)
# Chromium says this in the console.
LOWEST_ERROR = 400
FAILED = "Failed to load resource: the server responded with a status of {} ({})"
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

    def report(words: str) -> None:
        if not any(each in words for each in known):
            complaints.append(words)

    def said(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            report(message.text)

    def answered(response: Response) -> None:
        if response.status >= LOWEST_ERROR:
            report(FAILED.format(response.status, response.status_text))

    page.on("console", said)
    page.on("pageerror", lambda error: report(str(error)))
    if page.context.browser and page.context.browser.browser_type.name == "firefox":
        page.on("response", answered)
    return complaints
