// The content of the session list: its workspace, its updates, and changes of one or several sessions with Undo.
import htmx from "../../vendor/htmx/htmx.esm.min.js";
import { fetchText, post } from "../net/http.js";
import { readTab, writeTab } from "../net/storage.js";
import { addCommand, onAction } from "../ui/commands.js";
import { askToConfirm, cloneTemplate, distanceToEnd, NEAR_END_PX } from "../ui/dom.js";
import { setPictures } from "../ui/faces.js";
import { format, words } from "../ui/i18n.js";
import { navigate } from "../ui/navigation.js";
import { openMenu, positionPopover } from "../ui/popover.js";
import { localizeTimes, onMidnight, storeTimeZone } from "../ui/time.js";
import { showToast } from "../ui/toast.js";

// Updates of the session list, which do not disturb what the user is doing in it.

const DELAY_MS = 300;
const POLL_INTERVAL_MS = 15_000;
const list = document.getElementById("session-list");
const view = { shown: "", archived: "" };
let refreshTimer = 0;
let pendingFetch = null;

/** Fetches the list immediately. Resolves to whether that worked. */
export async function refreshList() {
  clearTimeout(refreshTimer);
  refreshTimer = 0;
  while (pendingFetch) await pendingFetch; // the pending response may be older than the change
  pendingFetch = fetchList().finally(() => (pendingFetch = null));
  return pendingFetch;
}

/** Shows more rows, or another list: {shown: "180"}, {archived: "yes"}. Resolves to whether that worked. */
export async function changeView(values) {
  const before = { ...view };
  Object.assign(view, values);
  const isFetched = await refreshList();
  if (!isFetched) Object.assign(view, before);
  return isFetched;
}

export const showsArchive = () => view.archived === "yes";

/** Fetches the list soon, once for several calls. */
function refreshSoon() {
  refreshTimer ||= setTimeout(refreshList, DELAY_MS);
}

/** Keeps the list up to date. Polls while `isConnected()` is false, because no changes are reported then. */
export function keepUpdated(isConnected) {
  if (storeTimeZone().isNew) refreshSoon();
  localizeTimes(list);
  document.addEventListener("parley:list-changed", ({ detail }) => showChange(detail ?? {}));
  setInterval(() => document.hidden || isConnected() || refreshSoon(), POLL_INTERVAL_MS);
  document.addEventListener("visibilitychange", () => document.hidden || refreshSoon());
  addEventListener("pageshow", (event) => event.persisted && refreshSoon());
  onMidnight(refreshSoon);
}

async function showChange({ own: isOwn, now: isUrgent }) {
  while (isOwn && pendingFetch) await pendingFetch; // the pending response may be older than the change
  if (isOwn && updateOwnRow()) return;
  if (isUrgent) refreshList();
  else refreshSoon();
}

/**
 * Updates the row of the open session after a change of this session. This saves a request if only the agent's status
 * and the time have changed. Returns false if the list must be fetched, because more may have changed.
 */
function updateOwnRow() {
  const row = document.getElementById(`row-${list.dataset.current}`);
  const log = document.getElementById("log");
  if (!row || !log || document.hidden || showsArchive() || row.querySelector(".session-rename")) return false;
  const { status, archived } = document.getElementById("main").dataset;
  const isFirst = row.dataset.pinned === "yes" || row === list.querySelector("#session-group-today .session-row");
  const isRead = distanceToEnd(log) < NEAR_END_PX;
  const title = document.querySelector('[data-part="title"]')?.textContent;
  const isSame =
    row.dataset.waiting === "no" &&
    row.dataset.mentioned === "no" &&
    status !== "waiting" &&
    row.dataset.archived === (archived || "no");
  if (!isFirst || !isRead || !isSame || row.querySelector(".session-title").textContent !== title) return false;
  row.classList.remove("is-unread");
  const time = row.querySelector(".session-time");
  while (time.previousElementSibling.matches(".pulse, .unread")) time.previousElementSibling.remove();
  if (status !== "idle") time.before(cloneTemplate("session-working"));
  time.dateTime = new Date().toISOString();
  localizeTimes(row);
  return true;
}

/**
 * Returns whether the user is renaming a session. A form with a refused title counts only if it has the focus, because
 * `restoreRefused` puts it back into the new list.
 */
const isRenaming = () => list.querySelector(".session-rename:is(:not(.refused), :focus-within)") !== null;

async function fetchList() {
  if (isRenaming()) return (refreshSoon(), false);
  const query = new URLSearchParams({ ...view, current: list.dataset.current, workspace: currentWorkspace() });
  const text = await fetchText(`${list.dataset.address}?${query}`);
  if (!text?.includes("listed-workspaces")) return false; // without it, no later update would work (see listWorkspaces)
  if (isRenaming()) return (refreshSoon(), false);
  await replaceContent(text);
  return true;
}

/** Updates the list to new HTML. Rows keep their elements, also when they move, so that the focus stays. */
async function replaceContent(text) {
  const focused = list.contains(document.activeElement) ? document.activeElement.id : "";
  const top = list.scrollTop;
  await htmx.swap({ text, target: list, sourceElement: list, swap: "innerMorph" });
  localizeTimes(list);
  list.scrollTop = top;
  positionPopover();
  if (focused && document.activeElement === document.body)
    (document.getElementById(focused) ?? list).focus({ preventScroll: true });
  const faces = document.getElementById("listed-faces");
  if (faces) setPictures(JSON.parse(faces.dataset.faces));
  list.dispatchEvent(new Event("parley:list-updated", { bubbles: true }));
}

const REMOVING_ACTIONS = ["delete", "leave"];
const TOAST_SECONDS = 8;
const RESULT_NAME = "parley:done";

/** Runs an action of chat/services/sessions/actions.py on sessions. Asks first if the server returns a question. */
export async function changeSessions(action, ids, { final = false, sure: isSure = false, back = "" } = {}) {
  try {
    const values = [["action", action], ...ids.map((id) => ["session", id]), ...(isSure ? [["sure", "yes"]] : [])];
    const done = await post(list.dataset.actionUrl, values, words.notDone);
    if (done.asks)
      return (await confirmDeletion(done.asks, ids.length)) && changeSessions(action, ids, { final, sure: true });
    if (REMOVING_ACTIONS.includes(action) && done.ids.includes(list.dataset.current))
      return navigateWithResult({ ...done, back: location.pathname }, list.dataset.home);
    if (back && done.ids.length) return navigateWithResult({ ...done, undo: "" }, back);
    showResult(final ? { ...done, undo: "" } : done);
  } catch (error) {
    showToast(error.message);
  }
  await refreshList();
}

/** Asks whether to delete sessions that other people also use. Resolves to whether the user agrees. */
function confirmDeletion(question, count) {
  const title = count > 1 ? format(words.deleteSessions, { count }) : words.deleteSession;
  return askToConfirm({ title, text: question, button: words.delete });
}

/** Shows the result of an action. `back` is the page of the session that was open, to which Undo returns. */
function showResult({ ids, words: text, undo, back }) {
  const action = undo && { label: words.undo, run: () => changeSessions(undo, ids, { final: true, back }) };
  if (text) showToast(text, { action: action || null, seconds: TOAST_SECONDS });
}

/**
 * Opens another page, which shows the toast: the home page if the open session was removed, or the restored session.
 */
function navigateWithResult(done, address) {
  writeTab(RESULT_NAME, done);
  location.assign(address);
}

/** Shows the toast that the previous page has stored for this page. */
export function showHandedOver() {
  const done = readTab(RESULT_NAME);
  writeTab(RESULT_NAME, null);
  if (done) showResult(done);
}

// The user's workspaces, and the button that switches between them. It is hidden if the user has only one.

const switchButton = document.getElementById("workspace-switch");
// The field with the workspace in which the home page creates a session. "" is the user's current workspace.
const workspaceField = document.querySelector("#begin [name=workspace]");

/** Returns the workspaces, as last received: {id, name, initials, color, address, here, unread}. */
const listWorkspaces = () => JSON.parse(document.getElementById("listed-workspaces").dataset.workspaces);

/** Returns the id of the workspace that this page shows, or "" if the user has only one. */
export const currentWorkspace = () => String(listWorkspaces().find(({ here }) => here)?.id ?? "");

const openWorkspace = ({ address }) => navigate(address);

function workspaceItem(workspace) {
  return {
    label: workspace.name,
    checked: workspace.here,
    unread: workspace.unread ? words.unread : "",
    run: () => openWorkspace(workspace),
  };
}

/** Updates the switch, which was rendered with the page. */
function updateSwitch() {
  const all = listWorkspaces();
  const here = all.find((workspace) => workspace.here);
  switchButton.hidden = all.length < 2;
  if (workspaceField) workspaceField.value = here?.id ?? "";
  if (here) {
    const face = switchButton.querySelector(".face");
    face.textContent = here.initials;
    face.className = `face small ${here.color}`;
    switchButton.querySelector(".current-workspace").textContent = here.name;
    switchButton.querySelector(".unread").hidden = !all.some(({ unread }) => unread);
  }
  all.forEach(addWorkspaceCommand);
}

function addWorkspaceCommand({ id, name, address }) {
  const currentData = () => listWorkspaces().find((workspace) => workspace.id === id);
  const can = () => currentData()?.here === false;
  addCommand({
    id: `workspace-${id}`,
    label: format(words.goToWorkspace, { name }),
    icon: "chevrons-up-down",
    can,
    run: () => navigate(address),
  });
}

export function connectWorkspaces() {
  onAction("workspaces", () =>
    openMenu(switchButton, [listWorkspaces().map(workspaceItem)], { label: words.workspaces }),
  );
  updateSwitch();
  list.addEventListener("parley:list-updated", updateSwitch);
}
