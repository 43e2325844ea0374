// The panel beside the session: opening and closing, its tabs, and updates.
import { tryRequest } from "../messages/requests.js";
import { live, page, sendCommand } from "../messages/session.js";
import { fetchText } from "../net/http.js";
import { onAction, PHONE } from "../ui/commands.js";
import { parseHtml, patchChildren } from "../ui/dom.js";
import { updateFaces } from "../ui/faces.js";
import { format, words } from "../ui/i18n.js";
import { createLoadError } from "../ui/loading.js";
import { addRovingFocus, horizontalKeys } from "../ui/options.js";
import { localizeTimes } from "../ui/time.js";
import { showToast } from "../ui/toast.js";
import * as context from "./context.js";
import * as files from "./files.js";
import * as prompt from "./system_prompt.js";

const DELAY_MS = 150;
const RETRY_MS = 5_000;
const FRAMES = ["session", "synced", "people", "usage"];
const panel = document.getElementById("panel");
const body = document.getElementById("panel-body");
const tabs = [...panel.querySelectorAll("[role=tab]")];
let previousFocus = null;
let refreshTimer = 0;
let lastUpdate = null;

/**
 * Opens the panel, with the tab `tab` if given. Moves the focus to the element with the id `focus`, if given. With
 * `past`, the context tab shows the request for that message's answer. With `path`, the files tab shows that file or
 * folder.
 */
export async function open(focus, { tab = "", past = "", path = null } = {}) {
  if (panel.hidden && focus) previousFocus = document.activeElement;
  panel.hidden = false;
  updateInert();
  if (tab) selectTab(tab);
  if (tab === "context") context.showRequest(past);
  if (tab === "files" && path !== null) files.setPath(path);
  if (focus) (document.getElementById(focus) ?? panel).focus();
  await fetchContent();
  // Focus the new content, unless the user has moved the focus.
  if (focus && document.activeElement === panel) document.getElementById(focus)?.focus();
}

export function close() {
  const hadFocus = panel.contains(document.activeElement);
  panel.hidden = true;
  updateInert();
  if (hadFocus) (previousFocus?.isConnected ? previousFocus : document.getElementById("more"))?.focus();
  previousFocus = null;
}

/** Closes the panel on phones, where it covers the messages. */
function closeIfCovering() {
  if (PHONE.matches) close();
}

/** Updates the panel's button. On phones, makes the page inert while the panel covers it. */
function updateInert() {
  page.inert = PHONE.matches && !panel.hidden;
  document.getElementById("panel-button").setAttribute("aria-expanded", String(!panel.hidden));
}

function selectTab(wanted) {
  for (const tab of tabs) {
    const isSelected = tab.dataset.tab === wanted;
    tab.ariaSelected = String(isSelected);
    tab.tabIndex = isSelected ? 0 : -1;
    document.getElementById(tab.getAttribute("aria-controls")).hidden = !isSelected;
  }
}

const selectedTab = () => tabs.find((tab) => tab.ariaSelected === "true").dataset.tab;

/** Fetches the content of the tab that is shown after `delay` ms. */
function refreshSoon(delay = DELAY_MS) {
  clearTimeout(refreshTimer);
  refreshTimer = setTimeout(() => panel.hidden || fetchContent(), delay);
}

function fetchContent() {
  return { context: context.refresh, files: files.refresh, about: fetchAbout }[selectedTab()]();
}

/** Fetches and shows the content. If it is called again in the meantime, both calls wait for the later content. */
function fetchAbout() {
  const began = performance.now();
  const update = fetchText(panel.dataset.address).then((html) => {
    if (update !== lastUpdate) return lastUpdate;
    if (prompt.isOlderThanEdit(began)) return fetchAbout();
    if (html !== null) showAbout(html);
    else if (body.querySelector("section")) refreshSoon(RETRY_MS);
    else body.replaceChildren(createLoadError(fetchAbout));
  });
  lastUpdate = update;
  return update;
}

function showAbout(html) {
  const fresh = parseHtml(html);
  const serverPrompt = prompt.extractPrompt(fresh);
  const hadFocus = body.contains(document.activeElement);
  patchChildren(body, fresh);
  prompt.showPrompt(serverPrompt);
  if (hadFocus && document.activeElement === document.body) panel.focus({ preventScroll: true });
  showKnowledge();
  updateFaces(body);
  localizeTimes(body);
  markPresent();
}

/** Marks the people who are present. Returns false if one of them is not in the list yet. */
function markPresent() {
  const present = new Set(
    [...document.querySelectorAll("#presence li [data-person]")].map((face) => face.dataset.person),
  );
  present.add(page.dataset.viewerId);
  for (const member of body.querySelectorAll("[data-member]")) {
    member.toggleAttribute("data-here", present.delete(member.dataset.member));
  }
  return present.size === 0;
}

function handlePresence() {
  if (!markPresent()) refreshSoon(); // a person has been added
}

/** Connects the buttons that add and remove agents. The panel's content is updated by the session's frame. */
function connectAgents() {
  onAction("add-agent", () => sendCommand({ type: "add_agent", agent: document.getElementById("agent-to-add").value }));
  onAction("remove-agent", removeAgent);
}

async function removeAgent(button) {
  const { agent, title } = button.dataset;
  const hadFocus = button.contains(document.activeElement);
  if (!(await sendCommand({ type: "remove_agent", agent }))) return;
  const run = () => sendCommand({ type: "add_agent", agent, again: true });
  showToast(format(words.agentRemoved, { name: title }), { action: { label: words.undo, run } });
  await fetchContent();
  // The next agent's button could be pressed by mistake.
  if (hadFocus) (document.getElementById("add-agent") ?? panel).focus();
}

// The choice of the workspace's files that the session's agents use.

const ALL_FILES = "*";
const knowledgeBoxes = () => [...body.querySelectorAll("[data-knowledge]")];
let pendingChanges = 0;

/** Shows the server's choice, unless a change is being sent. */
function showKnowledge() {
  if (pendingChanges) return;
  for (const box of knowledgeBoxes()) box.checked = box.hasAttribute("checked");
}

async function chooseKnowledge(box) {
  const isAll = box.dataset.knowledge === ALL_FILES;
  const single = knowledgeBoxes().filter(({ dataset, checked }) => dataset.knowledge !== ALL_FILES && checked);
  const knowledge = isAll && box.checked ? [ALL_FILES] : isAll ? [] : single.map(({ dataset }) => dataset.knowledge);
  pendingChanges += 1;
  const done = await tryRequest(() => live.request({ type: "configure", knowledge }));
  pendingChanges -= 1;
  if (!done) showKnowledge();
}

function connectKnowledge() {
  body.addEventListener("change", ({ target }) => target.dataset.knowledge && chooseKnowledge(target));
}

export function connect() {
  context.connect(closeIfCovering);
  files.connect();
  connectAgents();
  connectKnowledge();
  prompt.connect();
  live.addEventListener("frame", ({ detail }) => {
    if (panel.hidden) return;
    if (selectedTab() === "context") context.refreshAfter(detail.op);
    else if (selectedTab() === "files") files.refreshAfter(detail.op);
    else if (detail.op === "presence") setTimeout(handlePresence);
    else if (FRAMES.includes(detail.op) || (detail.op === "status" && detail.status === "idle")) refreshSoon();
  });
  PHONE.addEventListener("change", updateInert);
  addRovingFocus(panel.querySelector("[role=tablist]"), "[role=tab]", {
    keys: horizontalKeys(panel),
    go: (tab) => tab.click(),
  });
}
