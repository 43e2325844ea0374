// Retrying answers, running tools again and restoring attempts. The user is asked first if more than the last answer
// would be removed, and can undo it (RUN-12).
import { addCommand } from "../ui/commands.js";
import { cloneTemplate, openDialog } from "../ui/dom.js";
import { countText, words } from "../ui/i18n.js";
import { showToast } from "../ui/toast.js";
import { createFork } from "./fork.js";
import { lastMessage } from "./list.js";
import { stopAgentAndTry, tryRequest } from "./requests.js";
import { canEdit, live, page } from "./session.js";

let isPending = false; // whether a request of `runOnce` is pending, or asks the user

/** Runs `task`, unless a previous one is pending: the user may press twice. Resolves to null then. */
async function runOnce(task) {
  if (isPending) return null;
  isPending = true;
  return task().finally(() => (isPending = false));
}

/** Requests a new answer from a message on. The server decides which messages stay. */
export function retry({ id }, request = tryRequest, atMost = 0, edited = false) {
  const question = edited ? saveQuestion() : { title: words.retryTitle, confirm: words.actionRetry, forks: true };
  const task = () => sendWithUndo({ type: "retry", id, edited }, question, atMost);
  return request(() => runOnce(task), { label: words.stopAndRetry });
}

/** Lets the agent continue an answer that was cut off. */
export const continueAnswer = () => tryRequest(() => live.request({ type: "continue" }), { about: "continue" });

/** Returns whether the last answer was cut off: either its text or the turn was interrupted. */
function isCutOff() {
  const end = document.getElementById("messages").lastElementChild;
  const text = lastMessage(":not(.error)");
  const isLast = end === text || end?.matches(".error, .marker");
  return isLast && (end?.matches(".marker[data-status=interrupted]") || text?.matches("[data-status=interrupted]"));
}

export function connect() {
  if (!canEdit) return;
  const isIdle = () => page.dataset.status === "idle" && page.dataset.archived === "no";
  addCommand({
    id: "continue",
    label: words.continueAnswer,
    icon: "play",
    slash: "continue",
    run: continueAnswer,
    can: () => isIdle() && isCutOff(),
  });
  addCommand({
    id: "run-tools",
    label: words.actionRunTools,
    icon: "play",
    slash: "run-tools",
    run: () => runTools(lastMessage(".tool_group")),
    can: () => isIdle() && lastMessage(".tool_group") !== null,
  });
}

/** Runs the tools of a message's response again. */
export function runTools({ id }, request = tryRequest) {
  const question = { title: words.runToolsTitle, confirm: words.actionRunTools };
  const task = () => sendWithUndo({ type: "run_tools", id }, question);
  return request(() => runOnce(task), { label: words.stopAndRunTools });
}

/** Stops the agent if it is working, and then restores an earlier attempt. */
export function restoreAttempt(attempt, report) {
  const question = { title: words.restoreTitle, confirm: words.restore };
  const restore = async () => {
    const done = await sendConfirmed({ type: "restore_attempt", attempt }, question, 0);
    if (done) withdrawUndo();
    if (done) showToast(words.messagesRestored);
    return done;
  };
  return stopAgentAndTry(restore, { label: words.stopAndRestore, report });
}

let closeUndoToast = null; // closes the toast with the last Undo

/** Closes the toast with Undo, because the page shows another attempt now. */
export const withdrawUndo = () => closeUndoToast?.();

const saveQuestion = () => ({ title: words.saveTitle, confirm: words.saveAndRetry, forks: true });

/**
 * Asks the user to confirm a retry after an edit. Resolves to the number of messages it may remove, "fork", or null.
 */
export const confirmRetry = (id) => runOnce(() => askToRetry(id));

async function askToRetry(id) {
  const found = await live.request({ type: "retry", id, preview: true });
  if (found.last_answer) return 0;
  const choice = await confirmRemoval(found, saveQuestion());
  return choice === "confirm" ? found.messages : choice;
}

/** Sends a command that removes messages, and offers Undo unless only an error was removed. */
async function sendWithUndo(command, question, atMost = 0) {
  const isError = document.getElementById(command.id)?.matches(".error");
  const done = await sendConfirmed(command, question, atMost);
  if (!done?.attempt || isError) return done;
  const text = done.last_answer ? words.answerReplaced : countText(done.messages, words.removedOne, words.removedMany);
  if (done.last_answer) withdrawUndo(); // the toast about the previous answer
  closeUndoToast = showToast(text, { action: { label: words.undo, run: () => restoreAttempt(done.attempt) } });
  return done;
}

/** Sends a command that may remove `atMost` messages. If it would remove more, asks the user and sends it again. */
export async function sendConfirmed(command, question, atMost) {
  try {
    return await live.request({ ...command, at_most: atMost });
  } catch (refusal) {
    if (refusal.code !== "confirm") throw refusal;
    const choice = await confirmRemoval(refusal, question);
    if (choice === "confirm") return sendConfirmed(command, question, refusal.messages);
    if (choice === "fork") location.assign(await createFork({ id: refusal.after, run: true }));
    return null;
  }
}

/** Asks the user whether to remove messages. Resolves to "confirm", "fork", or null if the user cancels. */
async function confirmRemoval({ messages, others }, { title, confirm, forks = false }) {
  const dialog = cloneTemplate("confirm-withdrawal");
  const part = (name) => dialog.querySelector(`[data-name=${name}]`);
  part("title").textContent = title;
  part("count").textContent = countText(messages, words.willRemoveOne, words.willRemoveMany);
  part("people").textContent = others ? countText(others, words.writtenByOne, words.writtenByMany) : "";
  part("confirm").textContent = confirm;
  part("fork").hidden = !forks;
  const answer = openDialog(dialog);
  (forks ? part("fork") : part("confirm")).focus();
  const choice = await answer;
  return ["confirm", "fork"].includes(choice) ? choice : null;
}
