"""The state of a session's page, in a form that is the same for an open page and a fresh page of the same user."""

from __future__ import annotations

from difflib import unified_diff

from playwright.async_api import Page

from agents.messages import Json

# Returns the state without what only this page has: what its user has opened, unfolded, typed or pointed at.
STATE = """
() => {
  const THEIRS = [
    "form.edit", ".queued > form", ".message-actions:not(.resting)", ".source", ".suggestions", "iframe",
    ".diagram-error", ".question-error", "#prompt-conflict", "#prompt-state", ".pending[hidden]",
    ".editing-too", "#prompt-save", "#prompt-undo",
  ].join();
  const OPENED = ["open", "aria-expanded", "aria-pressed", "data-expanded", "data-shows", "style", "tabindex",
    "data-selectable", "aria-describedby", "aria-invalid", "aria-busy"];
  const CLASSES = ["editing", "spare", "run", "folded"];
  const own = (element) => {
    const copy = element.cloneNode(true);
    for (const each of copy.querySelectorAll(THEIRS)) each.remove();
    // Its text is the one that it came with.
    for (const each of copy.querySelectorAll("#prompt")) each.textContent = "";
    for (const each of [copy, ...copy.querySelectorAll("*")]) {
      for (const name of OPENED) each.removeAttribute(name);
      for (const name of CLASSES) each.classList.remove(name);
      if (each.getAttribute("class") === "") each.removeAttribute("class");
      if (each.classList) each.setAttribute("class", [...each.classList].sort().join(" "));
      if (each.matches("button[aria-labelledby]")) each.removeAttribute("title");
      if (each.matches("input:not([type=hidden])")) each.removeAttribute("value");
    }
    copy.normalize();
    const html = (node) => {
      if (node.nodeType === Node.TEXT_NODE) return node.data.trim() ? node.data.replace(/\\s+/g, " ") : "";
      if (node.nodeType !== Node.ELEMENT_NODE) return "";
      const names = [...node.attributes].map(({ name, value }) => `${name}="${value}"`).sort();
      const inside = [...node.childNodes].map(html).join("\\n");
      return `<${[node.localName, ...names].join(" ")}>\\n${inside}\\n</${node.localName}>`;
    };
    return html(copy);
  };
  const at = (id) => document.getElementById(id);
  const all = (selector) => [...document.querySelectorAll(selector)];
  const page = at("main");
  const { status, archived, replies, mode, agents, agent, archiver = "", role, canEdit, guest } = page.dataset;
  const list = [...at("messages").children];
  const sessionList = all("#session-list .session-row").map((row) => {
    const copy = row.cloneNode(true);
    for (const each of copy.querySelectorAll(".session-time")) each.remove();
    return own(copy);
  });
  const text = at("text");
  const tab = at("panel").hidden ? null : document.querySelector("#panel [role=tab][aria-selected=true]").dataset.tab;
  const body = tab && at(document.getElementById(`panel-tab-${tab}`).getAttribute("aria-controls"));
  return {
    messages: list.map((each) => [each.id || each.dataset.of, own(each)]),
    older: Boolean(at("older").dataset.before),
    newer: Boolean(at("newer").dataset.after),
    parts: {
      page: JSON.stringify({ status, archived, replies, mode, agents, agent, archiver, role, canEdit, guest }),
      header: own(document.querySelector(".top")),
      status: own(at("status")),
      resting: at("status").hasChildNodes() ? "" : own(document.querySelector(".message-actions.resting")),
      queue: own(at("queue")),
      held: own(document.querySelector(".held-bar")),
      fold: document.querySelector(".queue-fold").hidden + document.querySelector(".queue-fold").textContent.trim(),
      bar: own(document.querySelector(".context-bar")),
      archive: own(document.querySelector(".read-only.archived")),
      composer: text ? text.placeholder + " " + text.readOnly : "",
      disabled: all(".dock button:disabled, .top button:disabled")
        .map((each) => each.closest("[id]").id + " " + each.dataset.action).join("\\n"),
      uploads: at("uploads") ? own(at("uploads")) : "",
      typing: own(at("typing")),
      title: document.title,
      look: JSON.stringify([document.documentElement.lang, document.documentElement.dataset.theme ?? ""]),
      sessionList: sessionList.join("\\n"),
      panel: tab ? own(body) : "",
      prompt: at("prompt") && at("prompt-save").hidden ? at("prompt").value : "",
    },
    tab,
    dialogs: all("dialog[open]").length,
    busy: all("[aria-busy=true]").length,
  };
}
"""
OPEN_PANEL = """
(tab) => {
  if (document.getElementById("panel").hidden) document.getElementById("panel-button").click();
  document.querySelector(`#panel [data-tab=${tab}]`).click();
}
"""
# Loads older messages until a certain message or all messages are loaded.
REACH = """
async (id) => {
  for (let tries = 0; tries < 100 && !document.getElementById(id); tries++) {
    const button = document.querySelector("#older button");
    if (!button) return;
    const before = document.getElementById("messages").childElementCount;
    button.click();
    for (let waited = 0; waited < 40 && document.getElementById("messages").childElementCount === before; waited++)
      await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
"""


async def state_of(page: Page) -> Json:
    state: Json = await page.evaluate(STATE)
    return state


async def prepare_like(fresh: Page, live: Json) -> None:
    """Open the same parts on a fresh page as on the other page, and load as many messages."""
    if live["tab"]:
        await fresh.evaluate(OPEN_PANEL, live["tab"])
    ids = [each[0] for each in live["messages"] if str(each[0]).startswith("m_")]
    if ids:
        await fresh.evaluate(REACH, ids[0])


def differences(live: Json, fresh: Json) -> list[str]:
    """Return the differing lines of each part. Only messages that both pages have loaded are compared."""
    found = []
    for name, value in live["parts"].items():
        if name in ("panel", "prompt") and not (live["tab"] and value):
            continue  # the panel is not open, and only the next page would restore it
        if name == "resting" and live["newer"]:
            continue  # its actions are those of the last loaded message
        found += _diff(name, value, fresh["parts"][name])
    mine, theirs = _alike(live, fresh)
    if [key for key, _html in mine] != [key for key, _html in theirs]:
        found += _diff("order", "\n".join(str(key) for key, _ in mine), "\n".join(str(key) for key, _ in theirs))
    known = dict(theirs)
    for key, html in mine:
        if key in known:
            found += _diff(f"message {key}", html, known[key])
    return found


def _alike(live: Json, fresh: Json) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Return the messages that both pages have, except at the ends: those depend on messages that are not loaded."""
    mine, theirs = ([(str(key), html) for key, html in state["messages"]] for state in (live, fresh))
    keys, others = [key for key, _ in mine], [key for key, _ in theirs]
    start = next((at for at, key in enumerate(keys) if key.startswith("m_") and key in others), 0)
    if live["older"] or fresh["older"]:
        mine, theirs = mine[start + 1 :], theirs[others.index(keys[start]) + 1 if keys else 0 :]
        cut = next((at for at, (key, _) in enumerate(mine) if key in dict(theirs)), 0)
        mine = mine[cut:]
    if live["newer"] and mine:
        last = next((key for key, _ in reversed(mine) if key in dict(theirs)), None)
        end = [key for key, _ in theirs].index(last) if last else 0
        mine, theirs = mine[:-1], theirs[:end]
    return mine, theirs


def _diff(name: str, live: str, fresh: str) -> list[str]:
    lines = unified_diff(fresh.split("\n"), live.split("\n"), "fresh", "live", n=2, lineterm="")
    return [f"{name}: {line[:400]}" for line in lines]
