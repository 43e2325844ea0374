// The session list: the actions on each session, and selecting several.
import { post } from "../net/http.js";
import { copyLink } from "../ui/clipboard.js";
import { addCommand, onAction } from "../ui/commands.js";
import { cloneTemplate, createElement } from "../ui/dom.js";
import { isComposing } from "../ui/field.js";
import { format, words } from "../ui/i18n.js";
import { navigate } from "../ui/navigation.js";
import { notifyIfAway, preload } from "../ui/notify.js";
import { onLongPress, openMenu, suppressNextClick } from "../ui/popover.js";
import { showToast } from "../ui/toast.js";
import {
  changeSessions,
  changeView,
  connectWorkspaces,
  keepUpdated,
  refreshList,
  showHandedOver,
  showsArchive,
} from "./list_content.js";

const list = document.getElementById("session-list");
const LONG_PRESS_MS = 500; // ms
const rowOf = (element) => element?.closest(".session-row");
const currentRow = () => document.getElementById(`row-${list.dataset.current}`);
const canCreate = () => document.getElementById("new-session") !== null; // guests can't
const titleOf = (row) => row.querySelector(".session-title").textContent;
const isYes = (row, name) => row.dataset[name] === "yes";

/** Switches between archived and active sessions. */
async function showArchive() {
  endSelection();
  if (!(await changeView({ archived: showsArchive() ? "" : "yes", shown: "" }))) return showToast(words.notLoaded);
  list.scrollTop = 0;
  document.getElementById(showsArchive() ? "all-sessions" : "account")?.focus();
}

/** Shows more sessions. The focus goes to the first of them, unless the user has moved it in the meantime. */
async function showMore(button) {
  const known = new Set(allRows().map(({ id }) => id));
  button.disabled = true;
  const isFetched = await changeView({ shown: button.dataset.shown });
  button.disabled = false;
  if (!isFetched) showToast(words.notLoaded);
  if (![document.body, list, button].includes(document.activeElement)) return;
  const row = allRows()[allRows().findLastIndex(({ id }) => known.has(id)) + 1];
  (isFetched && row ? row.querySelector(".session-link") : button).focus();
}

function openRowMenu(row) {
  openMenu(row.querySelector(".session-options"), rowItems(row), {
    label: format(words.menuOf, { title: titleOf(row) }),
  });
}

/** Returns the actions on a session. Users cannot delete a session of another user, but can leave it. */
function rowItems(row) {
  const id = row.dataset.session;
  const sessionItem = (action, icon, label, more) => ({
    icon,
    label,
    run: () => changeSessions(action, [id]),
    ...more,
  });
  const pin = isYes(row, "pinned")
    ? sessionItem("unpin", "pin-off", words.unpin)
    : sessionItem("pin", "pin", words.pin);
  const archive = isYes(row, "archived")
    ? sessionItem("restore", "archive-restore", words.unarchive)
    : sessionItem("archive", "archive", words.archive);
  const end = isYes(row, "mine")
    ? sessionItem("delete", "trash-2", words.delete, { danger: true })
    : sessionItem("leave", "door-open", words.leave, { danger: true });
  const more = [
    { icon: "pencil", label: words.rename, run: () => renameRow(row).select() },
    pin,
    { icon: "link", label: words.copyLink, run: () => copyLink(row.querySelector(".session-link").href) },
    { icon: "list-checks", label: words.select, run: () => beginSelection(row) },
    ...(isYes(row, "mine") ? [archive] : []),
  ];
  // A subsession has the users of the calling session, so a user cannot leave only the subsession.
  return isYes(row, "follows") && !isYes(row, "mine") ? [more] : [more, [end]];
}

const refusedForms = new Map(); // forms with a title that the server has refused, by the id of the row

/** Renames a session in place. Enter or leaving the field saves, Escape cancels. `typed` was refused with `problem`. */
function renameRow(row, { typed = titleOf(row), problem = "" } = {}) {
  const form = cloneTemplate("session-rename");
  const field = form.querySelector("input");
  let isEnded = false;
  const finish = async (isSaved) => {
    if (isEnded) return;
    isEnded = true;
    const place = form.parentElement;
    const [title, before] = [field.value.trim(), titleOf(place)];
    const hadFocus = form.contains(document.activeElement);
    refusedForms.delete(place.id);
    form.remove();
    place.classList.remove("renaming");
    if (hadFocus) place.querySelector(".session-link").focus();
    if (isSaved && title && title !== before) await saveTitle(place, title, before);
  };
  field.value = typed;
  form.addEventListener("submit", (event) => (event.preventDefault(), finish(true)));
  // Leaving the field neither sends a refused title again nor discards it.
  field.addEventListener("blur", () => (problem && field.value === typed ? null : finish(true)));
  field.addEventListener("keydown", (event) => {
    event.stopPropagation();
    if (event.key === "Escape" && !isComposing(event)) finish(false);
  });
  if (problem) showProblem(form, row.id, problem);
  showForm(row, form);
  return field;
}

function showForm(row, form) {
  row.classList.add("renaming");
  row.append(form);
}

/** Shows the reason why a title was refused. */
function showProblem(form, rowId, problem) {
  refusedForms.set(rowId, form);
  form.classList.add("refused");
  const id = `${rowId}-problem`;
  form.append(createElement("p", { className: "errors", role: "alert", id, textContent: problem }));
  const field = form.querySelector("input");
  field.ariaInvalid = "true";
  field.setAttribute("aria-describedby", id);
}

/** Puts the forms of refused titles back, because the new list does not contain them. */
function restoreRefused() {
  for (const [id, form] of refusedForms) {
    const row = document.getElementById(id);
    if (row && !form.isConnected) showForm(row, form);
  }
}

async function saveTitle(row, title, before) {
  const shown = row.querySelector(".session-title");
  shown.textContent = title;
  try {
    await post(`${row.querySelector(".session-link").pathname}title`, { title }, words.notDone);
    await refreshList();
  } catch (error) {
    shown.textContent = before;
    await refreshList();
    const now = document.getElementById(row.id);
    if (!now) return showToast(error.message);
    const isHere = now.contains(document.activeElement);
    const field = renameRow(now, { typed: title, problem: error.message });
    if (isHere) field.focus();
  }
}

/**
 * Offers the actions on the open session, for the palette and the header's menu. The session may have no row: it can be
 * archived, further down, or work for another session.
 */
function addSessionCommands() {
  const row = currentRow();
  const main = document.getElementById("main");
  const { role, follows } = main.dataset;
  const can = (condition) => () => !!role && !main.hasAttribute("data-closed") && condition();
  const id = list.dataset.current;
  const pinned = row !== null && isYes(row, "pinned");
  const addSessionCommand = (action, more) =>
    addCommand({ id: action, run: () => changeSessions(action, [id]), ...more });
  addCommand({
    id: "pin",
    label: pinned ? words.unpin : words.pin,
    icon: pinned ? "pin-off" : "pin",
    run: () => changeSessions(pinned ? "unpin" : "pin", [id]),
    can: can(() => currentRow() !== null),
  });
  const isOwner = role === "owner";
  addSessionCommand("archive", {
    label: words.archive,
    icon: "archive",
    slash: "archive",
    can: can(() => isOwner && main.dataset.archived === "no"),
  });
  addSessionCommand("restore", {
    label: words.unarchive,
    icon: "archive-restore",
    can: can(() => isOwner && main.dataset.archived === "yes"),
  });
  addSessionCommand("leave", { label: words.leave, icon: "door-open", can: can(() => !isOwner && follows === "no") });
  addSessionCommand("delete", { label: words.delete, icon: "trash-2", can: can(() => isOwner) });
}

/** Opens the menu on a long press, unless the browser fires `contextmenu` first, which opens it, too. */
function handlePress(event) {
  const row = rowOf(event.target);
  if (event.pointerType !== "touch" || !row || event.target.closest("button, input")) return;
  const openMenuOnHold = () => {
    suppressNextClick();
    openRowMenu(row);
  };
  onLongPress(event, LONG_PRESS_MS, openMenuOnHold, ["contextmenu"]);
}

// Notifications of mentions in sessions that are not open in this page. The list marks such sessions (LIVE-07).

const knownMentions = new Map(); // the revision of the last mention by session

/** Returns the rows with new mentions, and remembers these mentions. */
function takeNewMentions() {
  const rows = [...list.querySelectorAll("[data-mentioned=yes]")];
  const isFresh = ({ dataset: { session, mention } }) => Number(mention) > (knownMentions.get(session) ?? 0);
  return rows.filter((row) => {
    const isNew = isFresh(row);
    if (isNew) knownMentions.set(row.dataset.session, Number(row.dataset.mention));
    return isNew;
  });
}

function notifyMentions() {
  for (const row of takeNewMentions()) {
    const { session } = row.dataset;
    if (session === list.dataset.current) continue;
    const title = row.querySelector(".session-title").textContent;
    notifyIfAway(title, words.youAreMentioned, { session, url: row.querySelector(".session-link").pathname });
  }
}

function addListCommands() {
  addCommand({
    id: "new",
    label: words.newSession,
    icon: "square-pen",
    keys: "Ctrl+Shift+O",
    slash: list.dataset.current ? "new" : "",
    run: () => navigate(list.dataset.home),
    can: canCreate,
  });
  addCommand({
    id: "archived",
    label: words.archivedSessions,
    icon: "archive",
    run: showArchive,
    can: () => !showsArchive(),
  });
}

/** Connects the list. `isConnected()` returns whether a socket reports changes of the list. */
export function connect(isConnected) {
  onAction("session-menu", (button) => openRowMenu(rowOf(button)));
  onAction("leave", () => changeSessions("leave", [list.dataset.current]));
  onAction("more-sessions", showMore);
  onAction("toggle-archive", showArchive);
  list.addEventListener("contextmenu", (event) => {
    const row = rowOf(event.target);
    if (!row || event.target.closest("input")) return;
    event.preventDefault();
    if (row.querySelector(".session-options").ariaExpanded !== "true") openRowMenu(row);
  });
  addListCommands();
  addSessionCommands();
  list.addEventListener("parley:list-updated", addSessionCommands);
  list.addEventListener("parley:list-updated", restoreRefused);
  connectWorkspaces();
  takeNewMentions(); // mentions from before the page was loaded cause no notification
  list.addEventListener("parley:list-updated", notifyMentions);
  preload();
  connectSelection();
  list.addEventListener("pointerdown", handlePress);
  keepUpdated(isConnected);
  showHandedOver();
}

// Selecting several sessions, to archive or delete them together.

const sidebar = document.getElementById("sidebar");
const selectionBar = document.getElementById("selection-bar");
const chosenIds = new Set();
let lastChosenId = "";

const allRows = () => [...list.querySelectorAll(".session-row")];
const isSelecting = () => sidebar.classList.contains("selecting");

/** Starts a selection with one row. */
function beginSelection(row) {
  sidebar.classList.add("selecting");
  selectionBar.hidden = false;
  setChosen([row], true);
  row.querySelector(".session-check").focus();
}

function endSelection() {
  if (!isSelecting()) return;
  const focused = selectionBar.contains(document.activeElement) || list.contains(document.activeElement);
  sidebar.classList.remove("selecting");
  selectionBar.hidden = true;
  chosenIds.clear();
  showChosen();
  if (focused) (document.getElementById(`session-link-${lastChosenId}`) ?? list).focus();
}

function setChosen(some, wanted) {
  for (const { dataset } of some) wanted ? chosenIds.add(dataset.session) : chosenIds.delete(dataset.session);
  lastChosenId = some.at(-1).dataset.session;
  showChosen();
}

/** Selects or deselects a row. With Shift, selects all rows from the last selected one on. */
function toggleRow(row, withRange) {
  const all = allRows();
  const [from, to] = [all.findIndex(({ dataset }) => dataset.session === lastChosenId), all.indexOf(row)];
  const wanted = !chosenIds.has(row.dataset.session);
  const some = withRange && from >= 0 ? all.slice(Math.min(from, to), Math.max(from, to) + 1) : [row];
  setChosen(from > to && withRange ? some.reverse() : some, wanted);
}

function showChosen() {
  for (const row of allRows()) {
    const isChosen = chosenIds.has(row.dataset.session);
    row.classList.toggle("chosen", isChosen);
    row.querySelector(".session-check").checked = isChosen;
  }
  document.getElementById("selection-count").textContent = isSelecting()
    ? format(words.selected, { count: chosenIds.size })
    : "";
}

async function changeChosen(action) {
  const ids = [...chosenIds];
  endSelection();
  if (ids.length) await changeSessions(action, ids);
}

function connectSelection() {
  list.addEventListener("click", (event) => {
    const row = event.target.closest(".session-row");
    if (!isSelecting() || !row || event.target.closest(".session-options")) return;
    if (!event.target.matches(".session-check")) event.preventDefault(); // do not open the session
    toggleRow(row, event.shiftKey);
  });
  sidebar.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !isSelecting()) return;
    event.stopPropagation();
    endSelection();
  });
  list.addEventListener("parley:list-updated", () => {
    const present = new Set(allRows().map(({ dataset }) => dataset.session));
    for (const id of chosenIds) if (!present.has(id)) chosenIds.delete(id);
    showChosen();
  });
  onAction("selection-archive", () => changeChosen(list.querySelector("#all-sessions") ? "restore" : "archive"));
  onAction("selection-delete", () => changeChosen("delete"));
  onAction("selection-end", endSelection);
}
