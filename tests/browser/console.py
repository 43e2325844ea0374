"""Errors, warnings and CSP violations that a browser reports while a user works on a page."""

from __future__ import annotations

from playwright.async_api import ConsoleMessage, Page, Response

# The browser's own reports of a lost connection. Other tests check the page's notice.
EXPECTED = (
    "ERR_INTERNET_DISCONNECTED",
    "ERR_CONNECTION_REFUSED",
    "ERR_CONNECTION_RESET",
    "ERR_SOCKET_NOT_CONNECTED",
    "WebSocket connection to",
    "Firefox can’t establish a connection",
    "was interrupted while the page was loading",
)
# The message for error responses in Chromium's console.
LOWEST_ERROR = 400
FAILED = "Failed to load resource: the server responded with a status of {} ({})"
# Checks the page as it was served, before any module runs and adds something to elements.
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


def collect_reports(page: Page, *expected: str) -> list[str]:
    """Return a list that collects reports of the page's console and scripts, except for expected texts."""
    reports: list[str] = []
    known = (*EXPECTED, *expected)

    def report(text: str) -> None:
        if not any(each in text for each in known):
            reports.append(text)

    def handle_message(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            report(message.text)

    def handle_response(response: Response) -> None:
        if response.status >= LOWEST_ERROR:
            report(FAILED.format(response.status, response.status_text))

    page.on("console", handle_message)
    page.on("pageerror", lambda error: report(error.stack or str(error)))
    if page.context.browser and page.context.browser.browser_type.name == "firefox":
        page.on("response", handle_response)
    return reports
