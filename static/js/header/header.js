// The header: actions on the session as a whole, the connection, and who is here.
import { connectChoice } from "../dialogs/opener.js";
import { ask, canEdit, isGuest, live, page } from "../messages/session.js";
import { signIn, valueAt } from "../net/http.js";
import { ring } from "../net/socket.js";
import { offerAccount } from "../sidebar/account.js";
import { organise } from "../sidebar/organise.js";
import { copyLink } from "../ui/clipboard.js";
import { itemsOf, offer, on, TOUCH } from "../ui/commands.js";
import { make, parse, patchChildren } from "../ui/dom.js";
import { dress, know, strangers } from "../ui/faces.js";
import { field } from "../ui/field.js";
import { aboutPeople, fill, words } from "../ui/i18n.js";
import { say } from "../ui/notice.js";
import { late } from "../ui/late.js";
import { notice } from "../ui/notice.js";
import { openBox, openMenu, place } from "../ui/popover.js";

// An archived session: its owner can restore it by a button in the composer's place.

let isRestoring = false; // by the banner's button, which loses the focus when the banner disappears

function connectArchived() {
  on("restore-session", async () => {
    isRestoring = true;
    await organise("restore", [page.dataset.session]);
  });
  new MutationObserver(([{ oldValue }]) => {
    const isRestored = oldValue === "yes" && page.dataset.archived === "no";
    const isLost = isRestoring || page.querySelector(".read-only.archived").contains(document.activeElement);
    if (isRestored && isLost && !TOUCH.matches) field?.focus();
    if (isRestored) isRestoring = false;
    if (oldValue === "no" && page.dataset.archived === "yes") giveWay();
  }).observe(page, { attributeFilter: ["data-archived"], attributeOldValue: true });
}

/** Announces that another user has archived the session. The composer is about to be hidden, and would lose the focus. */
function giveWay() {
  const banner = page.querySelector(".read-only.archived");
  if (field?.form.contains(document.activeElement)) page.focus({ preventScroll: true });
  if (page.dataset.archiver !== page.dataset.viewerId) say(banner.innerText.trim());
}

// The connection: its state in the header, and the end of access.

const connection = document.getElementById("connection");

function said(state, reason) {
  if (state !== "closed") return words[state];
  return { "no-access": words.noAccess, gone: words.gone, "signed-out": words.signedOut }[reason];
}

/** After the end of access the messages stay readable; all actions are disabled. */
function wayHome() {
  return make("a", { href: page.dataset.home, textContent: words.yourSessions });
}

// What changes the session. The panel and the session list can still be opened and closed.
const LOCKED = ".top button:not([aria-controls]), #panel .side-body :is(button, input, select)";

function lock() {
  for (const control of document.querySelectorAll(LOCKED)) control.disabled = true;
  for (const field of document.querySelectorAll("#panel .side-body textarea")) field.readOnly = true;
}

/** Offers to load the session again when the list has it again: access was given back, perhaps with another role. */
function waitForAccess() {
  let isMissed = false; // the list may be older than the end of access
  const look = () => {
    const isListed = document.getElementById(`rail-${page.dataset.session}`) !== null;
    if (isListed && isMissed)
      notice(words.accessBack, { action: { label: words.reload, run: () => location.reload() }, about: "access" });
    isMissed = !isListed;
  };
  document.addEventListener("parley:listed", look);
  ring(); // the session's own socket reports no changes of the list any more
}

function connectConnection() {
  live.addEventListener("state", ({ detail: { state, reason } }) => {
    connection.dataset.state = state;
    page.toggleAttribute("data-over", state === "closed");
    connection.textContent = said(state, reason);
    if (reason === "signed-out") return signIn();
    if (state !== "closed") return;
    connection.append(" ", wayHome());
    lock();
    waitForAccess();
  });
}

// The explanation of the header's figures.

/** Opens the explanation at a button. */
function openUsage(button) {
  const box = openBox(button, { className: "usage", label: words.usage });
  const known = document.querySelector("#figures [data-total]").dataset;
  if (!box) return;
  box.append(
    make("h2", { textContent: words.usage }),
    ...context(known),
    line(fill(words.usageTotal, { total: number(known.total) })),
    wayToContext(),
  );
  place();
  box.focus({ preventScroll: true });
}

function context({ used, window, percent }) {
  if (!used) return [line(words.usageNone)];
  if (!window) return [line(fill(words.usageNoWindow, { used: number(used) }))];
  const meter = make("meter", {
    max: 100,
    high: 80,
    low: 50,
    optimum: 0,
    value: Number(percent),
    ariaLabel: words.usage,
  });
  return [meter, line(fill(words.usageContext, { used: number(used), window: number(window) }))];
}

function wayToContext() {
  const properties = { type: "button", className: "button small", data: { action: "context-now" } };
  return make("button", properties, words.contextNext);
}

const number = (text) => Number(text).toLocaleString(document.documentElement.lang);
const line = (text) => make("p", { textContent: text });

const at = (id) => document.getElementById(id);
// The commands of the menu, in groups and in this order; other modules offer them.
const GROUPS = [
  ["rename", "share", "find", "panel", "behavior", "schedules"],
  ["fork", "export", "removed"],
  ["pin", "archive", "restore", "leave", "delete"],
];
const loading = at("share-body").firstElementChild;

/** Opens the dialog empty: what it had the last time would be replaced under the user's hands. */
async function openShare(button) {
  const dialog = at(button.dataset.dialog);
  at("share-body").replaceChildren(loading.cloneNode(true));
  dialog.showModal();
  (await late(() => import("../dialogs/share.js")))?.follow(dialog);
}

/** The header hides the figures while they are zero and on small screens. */
function figures() {
  return at("figures").checkVisibility() ? at("figures") : at("more");
}

async function rename(title) {
  if (title) return (await ask({ type: "rename", title })) !== null;
  at("rename").click();
}

function connectHeader() {
  on("choose-model", () => at("model").click());
  on("usage", openUsage);
  on("more", (button) => openMenu(button, GROUPS.map(itemsOf), { label: words.more }));
  on("share", openShare);
  if (canEdit) {
    offer({ id: "rename", label: words.rename, icon: "pencil", slash: "rename", run: rename });
  }
  if (canEdit && !isGuest) connectChoice(ask);
  offer({ id: "usage", label: words.usage, icon: "gauge", words: words.tokens, run: () => openUsage(figures()) });
  offer({
    id: "share",
    label: at("share-title").textContent,
    icon: "users",
    slash: "share",
    run: () => document.querySelector(".share-button").click(),
  });
  offer({ id: "copy-link", label: words.copyLink, icon: "link", run: () => copyLink(location.href.split("#")[0]) });
  offerAccount();
}

// Presence and typing (LIVE-05), and open editors (LIVE-08). All viewers get the same frames: the user's own entry is left out here.

const people = document.getElementById("presence");
const typing = document.getElementById("typing");
const isMe = (id) => String(id) === page.dataset.viewerId;
let drawnPresent = "";
let peopleBox = null;

/** Shows presence frames, and sends one when the user types. */
function connectPresence() {
  live.addEventListener("frame", ({ detail: frame }) => {
    if (frame.op === "presence") showPresence(frame);
    if (frame.op === "typing" || frame.op === "presence") showTyping(frame);
    if (frame.op === "editing") late(() => import("../messages/editing.js")).then((module) => module?.show(frame));
  });
  live.addEventListener("state", ({ detail: { state } }) => {
    if (state !== "connected") sayTyping([]);
    if (state === "offline" || state === "closed") people.hidden = true;
  });
  document.addEventListener("parley:typing", () => live.request({ type: "typing" }).catch(() => {}));
  on("here", openPresent);
}

function showPresence({ html }) {
  if (html !== drawnPresent) drawPresent(html);
  people.hidden = [...people.querySelectorAll("li [data-person]")].every((face) => isMe(face.dataset.person));
}

function showTyping({ typing }) {
  sayTyping(typing.filter(({ id }) => !isMe(id)).map(({ name }) => name));
}

function drawPresent(html) {
  drawnPresent = html;
  patchChildren(people, parse(html));
  dress(people);
  if (strangers(people).length) meet();
  if (peopleBox?.isConnected) fillBox();
}

/** Fetches pictures of people who joined after the page was loaded. */
async function meet() {
  const list = await valueAt(`/sessions/${page.dataset.session}/people`);
  if (!list) return;
  const none = strangers(people).map((id) => [id, ""]);
  know(Object.fromEntries([...none, ...list.people.map(({ id, picture }) => [id, picture])]));
}

function sayTyping(names) {
  const sentences = [words.isTyping, words.areTyping, words.manyTyping];
  typing.lastElementChild.textContent = names.length ? aboutPeople(sentences, names) : "";
  typing.toggleAttribute("data-on", names.length > 0);
}

function openPresent(button) {
  peopleBox = openBox(button, { className: "here-box", label: words.hereNow });
  if (!peopleBox) return;
  fillBox();
  peopleBox.focus();
}

function fillBox() {
  const list = people.querySelector("ul").cloneNode(true);
  list.hidden = false;
  peopleBox.replaceChildren(make("h2", { textContent: words.hereNow }), list);
  dress(peopleBox);
  place();
}

export function connect() {
  connectArchived();
  connectConnection();
  connectHeader();
  connectPresence();
}
