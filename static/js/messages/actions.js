// The actions on a message: one list for its toolbar, its menu and its keys (UI-11), and the functions that run them.
import { EDIT_PREFIX, fetchText, INTERRUPTED_EDIT } from "../net/http.js";
import { readTab, storedNames, writeTab } from "../net/storage.js";
import { copyFetched, copyText } from "../ui/clipboard.js";
import { addCommand, onAction, TOUCH } from "../ui/commands.js";
import { countText, words } from "../ui/i18n.js";
import { lazyImport } from "../ui/loading.js";
import { clearNoticeAfterSuccess, showNotice } from "../ui/notice.js";
import { closePopover, openMenu, suppressNextClick, unlessUserActed, watchUser } from "../ui/popover.js";
import { showToast } from "../ui/toast.js";
import { forkAt } from "./fork.js";
import { isFinished, lastMessage } from "./list.js";
import { stopAgentAndTry, tryRequest } from "./requests.js";
import { retry, runTools } from "./retry.js";
import { goToMessage } from "./scroll.js";
import { canEdit, isGuest, live, mayEdit, page } from "./session.js";

// Opens the history of a message or the system prompt, and removed messages. The dialog is loaded on first use.

/** Shows the history of a message, or of the system prompt. */
async function showHistory(of) {
  closePopover();
  (await unlessUserActed(lazyImport(() => import("../dialogs/history.js"))))?.show(`history?id=${of}`);
}

async function showRemoved() {
  (await lazyImport(() => import("../dialogs/history.js")))?.show("removed");
}

/** Shows how many of the user's messages another user has removed, for example by a retry above them. */
function reportRemoved({ detail: count }) {
  const text = countText(count, words.yoursRemovedOne, words.yoursRemovedMany);
  showToast(text, { action: { label: words.showRemoved, run: showRemoved } });
}

export function connect() {
  page.addEventListener("parley:messages-removed", reportRemoved);
  onAction("history", (button) => showHistory(button.dataset.of ?? button.closest("article").id));
  addCommand({
    id: "removed",
    label: words.removedMessages,
    keywords: words.removedWords,
    icon: "archive-restore",
    slash: "removed",
    run: showRemoved,
    can: () => canEdit,
  });
}

const isText = (message) => message.matches(".user, .assistant, .summary");
const canChange = (message) => canEdit && page.dataset.archived === "no" && isFinished(message);
const isExcluded = (message) => message.classList.contains("excluded");
const FOR_VIEWERS = ["copy", "source", "link", "fork", "history", "details"];

// The actions as {name, label, icon, key, can, run}, in the groups of the menu. Actions without a key are only in the
// menu. The server refuses an action with a `stopping` label while the agent works, so the menu then shows this label
// and stops the agent first. `keyIs` limits the key to certain messages.
const GROUPS = [
  [
    { name: "copy", label: () => words.actionCopy, icon: "copy", key: "c", can: () => true, run: copyMessage },
    { name: "select", label: () => words.actionSelect, icon: "text-select", can: () => TOUCH.matches, run: selectText },
    {
      name: "source",
      label: sourceLabel,
      icon: "code",
      key: "s",
      can: (message) => !message.matches(".error, .tool_group"),
      run: toggleSource,
    },
    { name: "link", label: () => words.actionLink, icon: "link", key: "l", can: () => true, run: copyLink },
  ],
  [
    {
      name: "edit",
      label: (message) => (!message || mayEdit(message) ? words.actionEdit : words.actionSuggest),
      icon: "pencil",
      key: "e",
      can: (message) => canChange(message) && isText(message),
      run: editMessage,
    },
    {
      name: "retry",
      label: (message) => (message ? words.actionRetry : words.lastRetry),
      stopping: () => words.stopAndRetry,
      icon: "rotate-ccw",
      key: "r",
      keyIs: (message) => message === lastMessage(),
      can: (message) => canChange(message) && !message.matches(".summary"),
      run: (message, _anchor, request) => retry(message, request),
    },
    {
      name: "run-tools",
      label: () => words.actionRunTools,
      stopping: () => words.stopAndRunTools,
      icon: "play",
      can: (message) => canChange(message) && message.matches(".tool_group"),
      run: (message, _anchor, request) => runTools(message, request),
    },
    {
      name: "fork",
      label: () => words.actionFork,
      icon: "git-fork",
      key: "f",
      can: (message) => !isGuest && isFinished(message),
      run: forkAt,
    },
    {
      name: "exclude",
      label: () => words.actionExclude,
      icon: "eye-off",
      key: "x",
      can: (message) => canChange(message) && !message.matches(".error") && !isExcluded(message),
      run: (message) => requestChange({ type: "exclude", id: message.id }),
    },
    {
      name: "include",
      label: () => words.actionInclude,
      icon: "eye",
      key: "x",
      can: (message) => canChange(message) && isExcluded(message),
      run: (message) => requestChange({ type: "include", id: message.id }),
    },
  ],
  [
    {
      name: "history",
      label: () => words.actionHistory,
      icon: "history",
      key: "h",
      can: isFinished,
      run: ({ id }) => showHistory(id),
    },
    { name: "details", label: () => words.actionDetails, icon: "info", key: "d", can: () => true, run: showDetails },
  ],
  [
    {
      name: "delete",
      label: () => words.actionDelete,
      stopping: () => words.stopAndDelete,
      icon: "trash-2",
      key: "Delete",
      danger: true,
      can: (message) => canChange(message) && mayEdit(message),
      run: deleteMessage,
    },
  ],
];
const ACTIONS = GROUPS.flat();

/** Returns the actions that are available for a message now. */
export const actionsFor = (message) => ACTIONS.filter((action) => action.can(message));

/** Returns the keys for a focused message, as {label, keys}. */
export function messageKeys() {
  const known = ACTIONS.filter(
    ({ key, name }) => key && (canEdit || FOR_VIEWERS.includes(name)) && !(isGuest && name === "fork"),
  );
  const switches = [
    { label: words.attemptBefore, keys: "←" },
    { label: words.attemptAfter, keys: "→" },
  ];
  return [...known.map(({ label, key }) => ({ label: label(), keys: shortKey(key) })), ...(canEdit ? switches : [])];
}

/** Runs an action by its name or key if it is available. Returns whether it did. */
export function runAction(message, wanted, anchor = message) {
  const isWanted = ({ name, key, keyIs }) => name === wanted || (key === wanted && (keyIs?.(message) ?? true));
  const action = actionsFor(message).find(isWanted);
  action?.run(message, anchor);
  return Boolean(action);
}

/** Opens the menu of a message beside an element. With `byPress`, the end of a long press does not click an item. */
export function openMenuFor(message, anchor, { byPress = false } = {}) {
  if (byPress) suppressNextClick();
  const groups = GROUPS.map((group) =>
    group.filter((action) => action.can(message)).map((action) => menuItem(action, message, anchor)),
  );
  openMenu(anchor, groups, { label: words.actions });
}

function menuItem(action, message, anchor) {
  const { icon, danger } = action;
  const key = (action.keyIs?.(message) ?? true) ? (action.key ?? "") : "";
  const isStopping = action.stopping && page.dataset.status !== "idle";
  const label = isStopping ? action.stopping() : action.label(message);
  return {
    label,
    icon,
    danger,
    keys: shortKey(key),
    run: () => action.run(message, anchor, isStopping ? stopAgentAndTry : tryRequest),
  };
}

const shortKey = (key) => (key.length === 1 ? key.toUpperCase() : key.slice(0, 3));

/** Resolves to a message's exact text from the server (MSG-12), or to null if the request failed. */
export function fetchSource(message) {
  return fetchText(`${location.pathname}source?id=${message.id}`);
}

/** Resolves to the Markdown of a message, with links to its files, or to null if the request failed. */
export function fetchMarkdown(message) {
  return fetchText(`${location.pathname}source?id=${message.id}&files=yes`);
}

export async function copyMessage(message) {
  const text = fetchMarkdown(message);
  if (await copyFetched(text)) return report(words.messageCopied);
  showNotice((await text) === null ? words.notLoaded : words.notCopied);
}

async function copyLink(message) {
  const isCopied = await copyText(`${location.origin}${location.pathname}#${message.id}`);
  if (isCopied) report(words.linkCopied);
  else showNotice(words.notCopied);
}

function report(done) {
  clearNoticeAfterSuccess();
  showToast(done);
}

function selectText(message) {
  message.dataset.selectable = "";
  getSelection().selectAllChildren(message.querySelector("[data-body], .plain, .column"));
}

async function toggleSource(message) {
  (await lazyImport(() => import("./details.js")))?.toggleSource(message);
}

function sourceLabel(message) {
  return message?.querySelector(":scope > .source") ? words.actionSourceOff : words.actionSource;
}

export async function editMessage(message) {
  const isQuiet = watchUser();
  (await lazyImport(() => import("./edit.js")))?.edit(message, { isQuiet });
}

/** Opens unsaved edits again after a reload, and goes to the edit that was interrupted by a sign-in. */
export async function reopenEdits() {
  const ids = storedNames(EDIT_PREFIX, "sessionStorage").map((name) => name.slice(EDIT_PREFIX.length));
  const left = readTab(INTERRUPTED_EDIT);
  writeTab(INTERRUPTED_EDIT, null);
  if (left) await goToMessage(left, { quietly: true }); // its message may not be loaded
  const messages = ids.map((id) => document.getElementById(id)).filter(Boolean);
  if (messages.length) await (await lazyImport(() => import("./edit.js")))?.reopen(messages);
  const field = left && document.getElementById(left)?.querySelector(".edit textarea");
  if (!field) return;
  await goToMessage(left, { quietly: true });
  if (!TOUCH.matches) field.focus({ preventScroll: true });
}

async function showDetails(message, anchor) {
  (await unlessUserActed(lazyImport(() => import("./details.js"))))?.show(message, anchor);
}

const requestChange = (command) => tryRequest(() => live.request(command));

function deleteMessage({ id }, _anchor, request = tryRequest) {
  const undo = { label: words.undo, run: () => requestChange({ type: "restore", id }) };
  const task = async () => {
    await live.request({ type: "remove", id });
    showToast(words.messageDeleted, { action: undo });
  };
  return request(task, { label: words.stopAndDelete });
}
