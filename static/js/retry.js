// Answering again, running tools again and restoring an attempt: asks first where more than the last answer goes, and can
// be undone (RUN-12).
import { live } from "./page.js";
import { toast } from "./toast.js";
import { insist, stopFirst } from "./unhindered.js";
import { fill, words } from "./words.js";

/** Lets the agent answer again from a message on; the server knows what stays and what goes. */
export function retry({ id }, how = insist, atMost = 0) {
  const asks = { title: words.retryTitle, confirm: words.actionRetry, forks: true };
  return how(() => withdraw({ type: "retry", id }, asks, atMost), { label: words.stopAndRetry });
}

/** Runs the tools of a message's response again. */
export function runTools({ id }, how = insist) {
  const asks = { title: words.runToolsTitle, confirm: words.actionRunTools };
  return how(() => withdraw({ type: "run_tools", id }, asks), { label: words.stopAndRunTools });
}

/** Puts an earlier attempt back, after stopping the agent if it works. */
export function restoreAttempt(attempt, tell) {
  const asks = { title: words.restoreTitle, confirm: words.restore };
  const restore = async () => {
    const done = await agreed({ type: "restore_attempt", attempt }, asks, 0);
    if (done) toast(words.messagesRestored);
    return done;
  };
  return stopFirst(restore, { label: words.stopAndRestore, tell });
}

/** Asks, before anything is changed, what a retry would take; resolves to what was agreed to, "fork" or null. */
export async function askToRetry(id) {
  const found = await live.request({ type: "retry", id, preview: true });
  if (found.last_answer) return 0;
  const choice = await ask(found, { title: words.retryTitle, confirm: words.actionRetry, forks: true });
  return choice === "confirm" ? found.messages : choice;
}

/** Sends a command that withdraws messages, and offers to undo it, unless it was an error that went. */
async function withdraw(command, asks, atMost = 0) {
  const isError = document.getElementById(command.id)?.matches(".error");
  const done = await agreed(command, asks, atMost);
  if (!done?.attempt || isError) return done;
  const text = done.last_answer ? words.answerReplaced : counted(done.messages, words.removedOne, words.removedMany);
  toast(text, { action: { label: words.undo, run: () => restoreAttempt(done.attempt) } });
  return done;
}

/** Sends a command with the number of messages that may go; a larger one is asked about, until it is agreed to. */
async function agreed(command, asks, atMost) {
  try {
    return await live.request({ ...command, at_most: atMost });
  } catch (refusal) {
    if (refusal.code !== "confirm") throw refusal;
    const choice = await ask(refusal, asks);
    if (choice === "confirm") return agreed(command, asks, refusal.messages);
    if (choice === "fork") location.assign((await live.request({ type: "fork", id: refusal.after, run: true })).url);
    return null;
  }
}

/** Resolves to "confirm", "fork", or null where the person thinks better of it. */
function ask({ messages, others }, { title, confirm, forks = false }) {
  const dialog = document.getElementById("confirm-withdrawal").content.firstElementChild.cloneNode(true);
  const part = (name) => dialog.querySelector(`[data-name=${name}]`);
  part("title").textContent = title;
  part("count").textContent = counted(messages, words.willRemoveOne, words.willRemoveMany);
  part("people").textContent = others ? counted(others, words.writtenByOne, words.writtenByMany) : "";
  part("confirm").textContent = confirm;
  part("fork").hidden = !forks;
  document.body.append(dialog);
  dialog.showModal();
  (forks ? part("fork") : part("confirm")).focus();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(["confirm", "fork"].includes(dialog.returnValue) ? dialog.returnValue : null);
    });
  });
}

const counted = (count, one, many) => (count === 1 ? one : fill(many, { count }));
