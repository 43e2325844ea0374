// The panel beside the session: opening and closing, its tabs, and updates.
import { ask, live, page } from "../messages/session.js";
import { textAt } from "../net/http.js";
import { on, PHONE } from "../ui/commands.js";
import { parse, patchChildren } from "../ui/dom.js";
import { dress } from "../ui/faces.js";
import { fill, words } from "../ui/i18n.js";
import { rove, sideways } from "../ui/options.js";
import { localise } from "../ui/time.js";
import { toast } from "../ui/toast.js";
import * as context from "./context.js";
import * as files from "./files.js";
import * as knowledge from "./knowledge.js";
import * as prompt from "./system_prompt.js";

const SOON = 150;
const STIRS = ["session", "synced", "people", "usage"];
const panel = document.getElementById("panel");
const body = document.getElementById("panel-body");
const tabs = [...panel.querySelectorAll("[role=tab]")];
let before = null;
let due = 0;
let asked = 0;

/**
 * Opens the panel, with a tab if one is named; the focus goes to the element of that id, if one is named. `past`: the
 * context's tab shows what was sent for that message's answer. `path`: the files' tab shows that file or folder.
 */
export async function open(focus, { tab = "", past = "", path = null } = {}) {
  if (panel.hidden && focus) before = document.activeElement;
  panel.hidden = false;
  isolate();
  if (tab) select(tab);
  if (tab === "context") context.show(past);
  if (tab === "files" && path !== null) files.show(path);
  if (focus) (document.getElementById(focus) ?? panel).focus();
  await fetchContent();
  // Focus the new content, unless the user has moved the focus.
  if (focus && document.activeElement === panel) document.getElementById(focus)?.focus();
}

export function close() {
  const hadFocus = panel.contains(document.activeElement);
  panel.hidden = true;
  isolate();
  if (hadFocus) (before?.isConnected ? before : document.getElementById("more"))?.focus();
  before = null;
}

/** Closes the panel on phones, where it covers the messages. */
function makeWay() {
  if (PHONE.matches) close();
}

/** Marks the panel as open; on phones it covers the page. */
function isolate() {
  page.inert = PHONE.matches && !panel.hidden;
  document.getElementById("panel-button").setAttribute("aria-expanded", String(!panel.hidden));
}

function select(wanted) {
  for (const tab of tabs) {
    const isIt = tab.dataset.tab === wanted;
    tab.ariaSelected = String(isIt);
    tab.tabIndex = isIt ? 0 : -1;
    document.getElementById(tab.getAttribute("aria-controls")).hidden = !isIt;
  }
}

const shown = () => tabs.find((tab) => tab.ariaSelected === "true").dataset.tab;

function refresh() {
  clearTimeout(due);
  if (!panel.hidden) due = setTimeout(fetchContent, SOON);
}

function fetchContent() {
  return { context: context.refresh, files: files.refresh, about: fetchAbout }[shown()]();
}

async function fetchAbout() {
  const mine = ++asked;
  const html = await textAt(panel.dataset.address);
  if (mine !== asked) return;
  if (html !== null) show(html);
  else if (!body.querySelector("section")) body.textContent = words.panelLost;
}

function show(html) {
  const fresh = parse(html);
  const written = prompt.keep(fresh);
  const hadFocus = body.contains(document.activeElement);
  patchChildren(body, fresh);
  prompt.follow(written);
  if (hadFocus && document.activeElement === document.body) panel.focus({ preventScroll: true });
  knowledge.follow();
  dress(body);
  localise(body);
  showPresent();
}

/** Marks the people who are present. Returns whether all of them are in the list. */
function showPresent() {
  const present = new Set(
    [...document.querySelectorAll("#presence li [data-person]")].map((face) => face.dataset.person),
  );
  present.add(page.dataset.viewerId);
  for (const member of body.querySelectorAll("[data-member]")) {
    member.toggleAttribute("data-here", present.delete(member.dataset.member));
  }
  return present.size === 0;
}

function follow() {
  if (!showPresent()) refresh(); // a person has just been added
}

/** Adds and removes agents of the session; what the panel shows follows by the session's frame. */
function connectAgents() {
  on("add-agent", () => ask({ type: "add_agent", agent: document.getElementById("agent-to-add").value }));
  on("remove-agent", removeAgent);
}

async function removeAgent(button) {
  const { agent, title } = button.dataset;
  const hadFocus = button.contains(document.activeElement);
  if (!(await ask({ type: "remove_agent", agent }))) return;
  const run = () => ask({ type: "add_agent", agent, again: true });
  toast(fill(words.agentRemoved, { name: title }), { action: { label: words.undo, run } });
  await fetchContent();
  if (hadFocus) (document.getElementById("add-agent") ?? panel).focus(); // not on the button of the next agent
}

export function connect() {
  context.connect(makeWay);
  files.connect();
  connectAgents();
  knowledge.connect();
  prompt.connect();
  live.addEventListener("frame", ({ detail }) => {
    if (panel.hidden) return;
    if (shown() === "context") context.stir(detail.op);
    else if (shown() === "files") files.stir(detail.op);
    else if (detail.op === "presence") setTimeout(follow);
    else if (STIRS.includes(detail.op) || (detail.op === "status" && detail.status === "idle")) refresh();
  });
  PHONE.addEventListener("change", isolate);
  rove(panel.querySelector("[role=tablist]"), "[role=tab]", { keys: sideways(panel), go: (tab) => tab.click() });
}
