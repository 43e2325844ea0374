// The header: actions on the whole session, the state of the connection, and the people who are present.
import { connectPicker } from "../dialogs/opener.js";
import { canEdit, isGuest, isMe, live, page, sendCommand } from "../messages/session.js";
import { fetchJson, goToSignIn } from "../net/http.js";
import { connectListSocket } from "../net/socket.js";
import { addAccountCommands } from "../sidebar/account.js";
import { changeSessions } from "../sidebar/list_content.js";
import { copyLink } from "../ui/clipboard.js";
import { addCommand, menuItems, onAction, TOUCH } from "../ui/commands.js";
import { createElement, parseHtml, patchChildren } from "../ui/dom.js";
import { peopleWithoutPicture, setPictures, updateFaces } from "../ui/faces.js";
import { field } from "../ui/field.js";
import { aboutPeople, format, words } from "../ui/i18n.js";
import { lazyImport } from "../ui/loading.js";
import { announce, showNotice } from "../ui/notice.js";
import { openMenu, openPopover, positionPopover } from "../ui/popover.js";

// An archived session has a button in place of the composer, with which its owner can restore it.

let isRestoring = false; // the banner's button, which had the focus, disappears when the session is restored

function connectArchived() {
  onAction("restore-session", async () => {
    isRestoring = true;
    await changeSessions("restore", [page.dataset.session]);
  });
  new MutationObserver(([{ oldValue }]) => {
    const isRestored = oldValue === "yes" && page.dataset.archived === "no";
    const isLost = isRestoring || page.querySelector(".read-only.archived").contains(document.activeElement);
    if (isRestored && isLost && !TOUCH.matches) field?.focus();
    if (isRestored) isRestoring = false;
    if (oldValue === "no" && page.dataset.archived === "yes") handleArchived();
  }).observe(page, { attributeFilter: ["data-archived"], attributeOldValue: true });
}

/** Moves the focus out of the composer, which is hidden next. Announces that another user has archived the session. */
function handleArchived() {
  const banner = page.querySelector(".read-only.archived");
  if (field?.form.contains(document.activeElement)) page.focus({ preventScroll: true });
  if (page.dataset.archiver !== page.dataset.viewerId) announce(banner.innerText.trim());
}

// The connection: its state in the header, and the end of access.

const connection = document.getElementById("connection");

function connectionText(state, reason) {
  if (state === "offline" && !canEdit) return words.offlineViewer; // viewers send nothing
  if (state !== "closed") return words[state];
  return { "no-access": words.noAccess, gone: words.gone, "signed-out": words.signedOut }[reason];
}

/** Returns a link to the user's sessions, for a page whose session they can no longer access. */
function createHomeLink() {
  return createElement("a", { href: page.dataset.home, textContent: words.yourSessions });
}

// The controls that change the session. The panel and the session list can still be opened and closed.
const LOCKED = ".top button:not([aria-controls]), #panel .side-body :is(button, input, select)";

function disableControls() {
  for (const control of document.querySelectorAll(LOCKED)) control.disabled = true;
  for (const area of document.querySelectorAll("#panel .side-body textarea")) area.readOnly = true;
}

/** Offers to reload the page when the list contains the session again: the user has got access again. */
function waitForAccess() {
  let isMissed = false; // the list on the page may be from before the end of access
  const checkList = () => {
    const isListed = document.getElementById(`row-${page.dataset.session}`) !== null;
    if (isListed && isMissed)
      showNotice(words.accessBack, { action: { label: words.reload, run: () => location.reload() }, about: "access" });
    isMissed = !isListed;
  };
  document.addEventListener("parley:list-updated", checkList);
  connectListSocket(); // the session's own socket no longer reports changes of the list
}

function connectConnection() {
  live.addEventListener("state", ({ detail: { state, reason } }) => {
    connection.dataset.state = state;
    page.toggleAttribute("data-closed", state === "closed");
    const text = connectionText(state, reason);
    // Each retry while offline has the same text, and Firefox also reports equal texts to screen readers.
    if (connection.textContent !== text) connection.textContent = text;
    if (reason === "signed-out") return goToSignIn();
    if (state !== "closed") return;
    connection.append(" ", createHomeLink());
    disableControls();
    waitForAccess();
  });
}

// The explanation of the header's figures.

/** Opens the explanation at a button. */
function openUsage(button) {
  const box = openPopover(button, { className: "usage", label: words.usage });
  const known = document.querySelector("#figures [data-total]").dataset;
  if (!box) return;
  box.append(
    createElement("h2", { textContent: words.usage }),
    ...contextLines(known),
    createLine(format(words.usageTotal, { total: formatNumber(known.total) })),
    createContextButton(),
  );
  positionPopover();
  box.focus({ preventScroll: true });
}

function contextLines({ used, window, percent }) {
  if (!used) return [createLine(words.usageNone)];
  if (!window) return [createLine(format(words.usageNoWindow, { used: formatNumber(used) }))];
  const meter = createElement("meter", {
    max: 100,
    high: 80,
    low: 50,
    optimum: 0,
    value: Number(percent),
    ariaLabel: words.usage,
  });
  return [meter, createLine(format(words.usageContext, { used: formatNumber(used), window: formatNumber(window) }))];
}

function createContextButton() {
  const properties = { type: "button", className: "button small", data: { action: "context-now" } };
  return createElement("button", properties, words.contextNext);
}

const formatNumber = (text) => Number(text).toLocaleString(document.documentElement.lang);
const createLine = (text) => createElement("p", { textContent: text });

const byId = (id) => document.getElementById(id);
// The commands of the menu, by group and in this order. Other modules offer them.
const MENU_GROUPS = [
  ["rename", "share", "find", "panel", "behavior", "schedules"],
  ["fork", "export", "removed"],
  ["pin", "archive", "restore", "leave", "delete"],
];
const loadingLine = byId("share-body").firstElementChild;

/** Opens the share dialog, without its previous content, which would be replaced while the user is using it. */
async function openShare(button) {
  const dialog = byId(button.dataset.dialog);
  byId("share-body").replaceChildren(loadingLine.cloneNode(true));
  dialog.showModal();
  const module = await lazyImport(() => import("../dialogs/share.js"));
  if (dialog.open) module?.connectDialog(dialog);
}

/** Returns the anchor of the usage box: the figures, or the menu's button if the figures are hidden. */
function usageAnchor() {
  return byId("figures").checkVisibility() ? byId("figures") : byId("more");
}

async function renameSession(title) {
  if (title) return (await sendCommand({ type: "rename", title })) !== null;
  byId("rename").click();
}

function addCommands() {
  onAction("choose-model", () => byId("model").click());
  onAction("usage", openUsage);
  onAction("more", (button) => openMenu(button, MENU_GROUPS.map(menuItems), { label: words.more }));
  onAction("share", openShare);
  if (canEdit) {
    addCommand({
      id: "rename",
      label: words.rename,
      icon: "pencil",
      slash: "rename",
      run: renameSession,
      takesText: true,
    });
  }
  if (canEdit && !isGuest) connectPicker(sendCommand);
  addCommand({
    id: "usage",
    label: words.usage,
    icon: "gauge",
    keywords: words.tokens,
    run: () => openUsage(usageAnchor()),
  });
  addCommand({
    id: "share",
    label: byId("share-title").textContent,
    icon: "users",
    slash: "share",
    run: () => document.querySelector(".share-button").click(),
  });
  addCommand({
    id: "copy-link",
    label: words.copyLink,
    icon: "link",
    run: () => copyLink(location.href.split("#")[0]),
  });
  addAccountCommands();
}

// Presence and typing (LIVE-05), and open editors (LIVE-08). All viewers get the same frames, so the page leaves out
// the user itself.

const presence = document.getElementById("presence");
const typingLine = document.getElementById("typing");
const NO_EDITORS = { editors: [], words: {} };
let lastEditors = NO_EDITORS; // the last frame about open editors
let drawnHtml = "";
let presenceBox = null;

/** Shows presence frames, and reports when the user types. */
function connectPresence() {
  live.addEventListener("frame", ({ detail: frame }) => {
    if (frame.op === "presence") showPresence(frame);
    if (frame.op === "typing" || frame.op === "presence") showTyping(frame);
    if (frame.op === "editing") showEditors(frame);
  });
  live.addEventListener("state", ({ detail: { state } }) => {
    if (state !== "connected") {
      showTypingNames([]);
      lastEditors = NO_EDITORS;
    }
    if (state === "offline" || state === "closed") presence.hidden = true;
  });
  document.addEventListener("parley:typing", () => live.request({ type: "typing" }).catch(() => {}));
  onAction("here", openPresence);
}

/** Shows the last frame about editors, because the module may be loaded for several of them in any order. */
async function showEditors(frame) {
  lastEditors = frame;
  (await lazyImport(() => import("../messages/editors.js")))?.show(lastEditors);
}

function showPresence({ html }) {
  if (html !== drawnHtml) drawPresence(html);
  presence.hidden = [...presence.querySelectorAll("li [data-person]")].every((face) => isMe(face.dataset.person));
}

function showTyping({ typing }) {
  showTypingNames(typing.filter(({ id }) => !isMe(id)).map(({ name }) => name));
}

function drawPresence(html) {
  drawnHtml = html;
  patchChildren(presence, parseHtml(html));
  updateFaces(presence);
  if (peopleWithoutPicture(presence).length) fetchPictures();
  if (presenceBox?.isConnected) fillPresenceBox();
}

/** Fetches pictures of people who joined after the page was loaded. */
async function fetchPictures() {
  const list = await fetchJson(`/sessions/${page.dataset.session}/people`);
  if (!list) return;
  const none = peopleWithoutPicture(presence).map((id) => [id, ""]);
  setPictures(Object.fromEntries([...none, ...list.people.map(({ id, picture }) => [id, picture])]));
}

function showTypingNames(names) {
  const sentences = [words.isTyping, words.areTyping, words.manyTyping];
  typingLine.lastElementChild.textContent = names.length ? aboutPeople(sentences, names) : "";
  typingLine.toggleAttribute("data-on", names.length > 0);
}

function openPresence(button) {
  presenceBox = openPopover(button, { className: "here-box", label: words.hereNow });
  if (!presenceBox) return;
  fillPresenceBox();
  presenceBox.focus();
}

function fillPresenceBox() {
  const list = presence.querySelector("ul").cloneNode(true);
  list.hidden = false;
  presenceBox.replaceChildren(createElement("h2", { textContent: words.hereNow }), list);
  updateFaces(presenceBox);
  positionPopover();
}

export function connect() {
  connectArchived();
  connectConnection();
  addCommands();
  connectPresence();
}
