// The actions on a message, as one list for its toolbar, its menu and its keys (UI-11), and what they do.
import { EDITS, LEFT, textAt } from "../net/http.js";
import { keepInTab, keptInTab, namesWith } from "../net/storage.js";
import { copyWords } from "../ui/clipboard.js";
import { offer, on, TOUCH } from "../ui/commands.js";
import { answerOf, copyOf } from "../ui/dom.js";
import { fill, words } from "../ui/i18n.js";
import { late } from "../ui/late.js";
import { notice, settle } from "../ui/notice.js";
import { close, openMenu, swallowClick, unlessOvertaken } from "../ui/popover.js";
import { toast } from "../ui/toast.js";
import { insist, stopFirst } from "./insist.js";
import { isOver, lastMessage, nextMessage } from "./list.js";
import { reveal } from "./scroll.js";
import { canEdit, isGuest, live, mayEdit, page } from "./session.js";

const FORKED = "parley:forked"; // what the fork that opens next in this tab says about its files
const SOON = 700;
const FORKING = 30;

// Retrying answers, running tools again and restoring an attempt. Asks first if more than the last answer would be
// removed, and offers Undo (RUN-12).

/** Asks for a new answer from a message on; the server decides which messages stay. */
export function retry({ id }, how = insist, atMost = 0, edited = false) {
  const asks = edited ? saving() : { title: words.retryTitle, confirm: words.actionRetry, forks: true };
  return how(() => withdraw({ type: "retry", id, edited }, asks, atMost), { label: words.stopAndRetry });
}

/** Lets the agent go on with an answer that was cut off. */
export const continueAnswer = () => insist(() => live.request({ type: "continue" }), { about: "continue" });

/** Whether the last answer was cut off: its text, or the turn. */
function isCut() {
  const end = document.getElementById("messages").lastElementChild;
  const text = lastMessage(":not(.error)");
  const isLast = end === text || end?.matches(".error, .marker");
  return isLast && (end?.matches(".marker[data-status=interrupted]") || text?.matches("[data-status=interrupted]"));
}

function connectGoingOn() {
  if (!canEdit) return;
  const isIdle = () => page.dataset.status === "idle" && page.dataset.archived === "no";
  offer({
    id: "continue",
    label: words.continueAnswer,
    icon: "play",
    slash: "continue",
    run: continueAnswer,
    can: () => isIdle() && isCut(),
  });
  offer({
    id: "run-tools",
    label: words.actionRunTools,
    icon: "play",
    slash: "run-tools",
    run: () => runTools(lastMessage(".tool_group")),
    can: () => isIdle() && lastMessage(".tool_group") !== null,
  });
}

/** Runs the tools of a message's response again. */
function runTools({ id }, how = insist) {
  const asks = { title: words.runToolsTitle, confirm: words.actionRunTools };
  return how(() => withdraw({ type: "run_tools", id }, asks), { label: words.stopAndRunTools });
}

/** Restores an earlier attempt, after stopping the agent if it works. */
export function restoreAttempt(attempt, tell) {
  const asks = { title: words.restoreTitle, confirm: words.restore };
  const restore = async () => {
    const done = await agreed({ type: "restore_attempt", attempt }, asks, 0);
    if (done) toast(words.messagesRestored);
    return done;
  };
  return stopFirst(restore, { label: words.stopAndRestore, tell });
}

const saving = () => ({ title: words.saveTitle, confirm: words.saveAndRetry, forks: true });

/** Asks the user to confirm the removals of a retry that follows an edit; resolves to the confirmed number, "fork", or null. */
export async function askToRetry(id) {
  const found = await live.request({ type: "retry", id, preview: true });
  if (found.last_answer) return 0;
  const choice = await ask(found, saving());
  return choice === "confirm" ? found.messages : choice;
}

/** Sends a command that removes messages, and offers Undo unless only an error was removed. */
async function withdraw(command, asks, atMost = 0) {
  const isError = document.getElementById(command.id)?.matches(".error");
  const done = await agreed(command, asks, atMost);
  if (!done?.attempt || isError) return done;
  const text = done.last_answer ? words.answerReplaced : counted(done.messages, words.removedOne, words.removedMany);
  toast(text, { action: { label: words.undo, run: () => restoreAttempt(done.attempt) } });
  return done;
}

/** Sends a command with the number of messages that may be removed; asks again while the actual number is larger. */
export async function agreed(command, asks, atMost) {
  try {
    return await live.request({ ...command, at_most: atMost });
  } catch (refusal) {
    if (refusal.code !== "confirm") throw refusal;
    const choice = await ask(refusal, asks);
    if (choice === "confirm") return agreed(command, asks, refusal.messages);
    if (choice === "fork") location.assign(await forked({ id: refusal.after, run: true }));
    return null;
  }
}

/** Resolves to "confirm", "fork", or null if the user cancels. */
async function ask({ messages, others }, { title, confirm, forks = false }) {
  const dialog = copyOf("confirm-withdrawal");
  const part = (name) => dialog.querySelector(`[data-name=${name}]`);
  part("title").textContent = title;
  part("count").textContent = counted(messages, words.willRemoveOne, words.willRemoveMany);
  part("people").textContent = others ? counted(others, words.writtenByOne, words.writtenByMany) : "";
  part("confirm").textContent = confirm;
  part("fork").hidden = !forks;
  const answer = answerOf(dialog);
  (forks ? part("fork") : part("confirm")).focus();
  const choice = await answer;
  return ["confirm", "fork"].includes(choice) ? choice : null;
}

const counted = (count, one, many) => (count === 1 ? one : fill(many, { count }));

// Opens the history of a message or the system prompt, and removed messages. The dialog is loaded on first use.

/** Shows the history of a message, or of the system prompt. */
async function showHistory(of) {
  close();
  (await unlessOvertaken(late(() => import("../dialogs/history.js"))))?.show(`history?id=${of}`);
}

async function showRemoved() {
  (await late(() => import("../dialogs/history.js")))?.show("removed");
}

/** Tells a user whose messages another person has removed, for example by a retry above them. */
function tellLost({ detail: count }) {
  const text = counted(count, words.yoursRemovedOne, words.yoursRemovedMany);
  toast(text, { action: { label: words.showRemoved, run: showRemoved } });
}

function connectPast() {
  page.addEventListener("parley:lost", tellLost);
  on("history", (button) => showHistory(button.dataset.of ?? button.closest("article").id));
  offer({
    id: "removed",
    label: words.removedMessages,
    words: words.removedWords,
    icon: "archive-restore",
    slash: "removed",
    run: showRemoved,
    can: () => canEdit,
  });
}

/** Forks, and resolves to the address of the fork, which will show what became of the workspace files. */
export async function forked(command) {
  let done = () => {};
  const patience = setTimeout(() => (done = toast(words.forking, { seconds: FORKING })), SOON);
  try {
    const { url, notice: aboutFiles } = await live.request({ type: "fork", ...command });
    keepInTab(FORKED, aboutFiles || null);
    return url;
  } finally {
    clearTimeout(patience);
    done();
  }
}

function showForked() {
  const aboutFiles = keptInTab(FORKED);
  if (!aboutFiles) return;
  keepInTab(FORKED, null);
  toast(aboutFiles, { seconds: 8 });
}

// Forks the whole session; the menu of a message forks at that message.

function last() {
  let message = lastMessage();
  while (message && !isOver(message)) message = nextMessage(message, "previous");
  return message;
}

function connectForking() {
  offer({
    id: "fork",
    label: words.forkSession,
    icon: "git-fork",
    slash: "fork",
    run: () => fork(last()),
    can: () => !isGuest && last() !== null,
  });
}

const isText = (message) => message.matches(".user, .assistant, .summary");
const mayChange = (message) => canEdit && page.dataset.archived === "no" && isOver(message);
const isExcluded = (message) => message.classList.contains("excluded");
const FOR_ALL = ["copy", "source", "link", "fork", "history", "details"];

// {name, label, icon, key, can, run}, in the groups of the menu; those without a key are in the menu only. An action
// with a `stopping` label is not available while the agent works, except in the menu, which stops the agent first.
// `keyIs` limits the key to certain messages.
const GROUPS = [
  [
    { name: "copy", label: () => words.actionCopy, icon: "copy", key: "c", can: () => true, run: copy },
    { name: "select", label: () => words.actionSelect, icon: "text-select", can: () => TOUCH.matches, run: select },
    {
      name: "source",
      label: labelOfSource,
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
      can: (message) => mayChange(message) && isText(message),
      run: edit,
    },
    {
      name: "retry",
      label: (message) => (message ? words.actionRetry : words.lastRetry),
      stopping: () => words.stopAndRetry,
      icon: "rotate-ccw",
      key: "r",
      keyIs: (message) => message === lastMessage(),
      can: (message) => mayChange(message) && !message.matches(".summary"),
      run: (message, _anchor, how) => retry(message, how),
    },
    {
      name: "run-tools",
      label: () => words.actionRunTools,
      stopping: () => words.stopAndRunTools,
      icon: "play",
      can: (message) => mayChange(message) && message.matches(".tool_group"),
      run: (message, _anchor, how) => runTools(message, how),
    },
    {
      name: "fork",
      label: () => words.actionFork,
      icon: "git-fork",
      key: "f",
      can: (message) => !isGuest && isOver(message),
      run: fork,
    },
    {
      name: "exclude",
      label: () => words.actionExclude,
      icon: "eye-off",
      key: "x",
      can: (message) => mayChange(message) && !message.matches(".error") && !isExcluded(message),
      run: (message) => asked({ type: "exclude", id: message.id }),
    },
    {
      name: "include",
      label: () => words.actionInclude,
      icon: "eye",
      key: "x",
      can: (message) => mayChange(message) && isExcluded(message),
      run: (message) => asked({ type: "include", id: message.id }),
    },
  ],
  [
    {
      name: "history",
      label: () => words.actionHistory,
      icon: "history",
      key: "h",
      can: isOver,
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
      can: (message) => mayChange(message) && mayEdit(message),
      run: remove,
    },
  ],
];
const ACTIONS = GROUPS.flat();

/** Returns the actions that are available for a message now. */
export const actionsFor = (message) => ACTIONS.filter((action) => action.can(message));

/** Returns the keys for the focused message: {label, keys}. */
export function keysOfMessages() {
  const known = ACTIONS.filter(
    ({ key, name }) => key && (canEdit || FOR_ALL.includes(name)) && !(isGuest && name === "fork"),
  );
  const switches = [
    { label: words.attemptBefore, keys: "←" },
    { label: words.attemptAfter, keys: "→" },
  ];
  return [...known.map(({ label, key }) => ({ label: label(), keys: shown(key) })), ...(canEdit ? switches : [])];
}

/** Runs an action by its name or key, if it is available; returns whether it did. */
export function act(message, wanted, anchor = message) {
  const isMeant = ({ name, key, keyIs }) => name === wanted || (key === wanted && (keyIs?.(message) ?? true));
  const action = actionsFor(message).find(isMeant);
  action?.run(message, anchor);
  return Boolean(action);
}

/** Opens the menu of a message beside an element; `byPress`: by a long press, whose end must not click an item. */
export function openFor(message, anchor, { byPress = false } = {}) {
  if (byPress) swallowClick();
  const groups = GROUPS.map((group) =>
    group.filter((action) => action.can(message)).map((action) => itemOf(action, message, anchor)),
  );
  openMenu(anchor, groups, { label: words.actions });
}

function itemOf(action, message, anchor) {
  const { icon, danger } = action;
  const key = (action.keyIs?.(message) ?? true) ? (action.key ?? "") : "";
  const stops = action.stopping && page.dataset.status !== "idle";
  const label = stops ? action.stopping() : action.label(message);
  return { label, icon, danger, keys: shown(key), run: () => action.run(message, anchor, stops ? stopFirst : insist) };
}

const shown = (key) => (key.length === 1 ? key.toUpperCase() : key.slice(0, 3));

/** Copies a message's exact text, which the server provides (MSG-12). */
export function sourceOf(message) {
  return textAt(`${location.pathname}source?id=${message.id}`);
}

/** Returns the Markdown of a message with links to its files. */
export function wholeOf(message) {
  return textAt(`${location.pathname}source?id=${message.id}&files=yes`);
}

export async function copy(message) {
  const text = await wholeOf(message);
  if (text === null) notice(words.notLoaded);
  else await put(text, words.messageCopied);
}

function copyLink(message) {
  return put(`${location.origin}${location.pathname}#${message.id}`, words.linkCopied);
}

async function put(text, done) {
  if (!(await copyWords(text))) return notice(words.notCopied);
  settle();
  toast(done);
}

function select(message) {
  message.dataset.selectable = "";
  getSelection().selectAllChildren(message.querySelector("[data-body], .plain, .column"));
}

async function toggleSource(message) {
  (await late(() => import("./details.js")))?.toggleSource(message);
}

function labelOfSource(message) {
  return message?.querySelector(":scope > .source") ? words.actionSourceOff : words.actionSource;
}

export async function edit(message) {
  (await late(() => import("./edit.js")))?.edit(message);
}

/** Opens the edits again that a reload has closed, and goes to the one that a sign-in interrupted. They are stored under this name and the message's id. */
export async function reopenEdits() {
  const ids = namesWith(EDITS, "sessionStorage").map((name) => name.slice(EDITS.length));
  const left = keptInTab(LEFT);
  keepInTab(LEFT, null);
  if (left) await reveal(left, { quietly: true }); // it may not be loaded
  const messages = ids.map((id) => document.getElementById(id)).filter(Boolean);
  if (messages.length) await (await late(() => import("./edit.js")))?.reopen(messages);
  const field = left && document.getElementById(left)?.querySelector(".edit textarea");
  if (!field) return;
  await reveal(left, { quietly: true });
  if (!TOUCH.matches) field.focus({ preventScroll: true });
}

async function showDetails(message, anchor) {
  (await unlessOvertaken(late(() => import("./details.js"))))?.show(message, anchor);
}

export function fork({ id }) {
  return insist(async () => location.assign(await forked({ id })));
}

const asked = (command) => insist(() => live.request(command));

function remove({ id }, _anchor, how = insist) {
  const undo = { label: words.undo, run: () => asked({ type: "restore", id }) };
  const task = async () => {
    await live.request({ type: "remove", id });
    toast(words.messageDeleted, { action: undo });
  };
  return how(task, { label: words.stopAndDelete });
}

export function connect() {
  connectPast();
  connectGoingOn();
  connectForking();
  showForked();
}
