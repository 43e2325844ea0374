// Retrying answers, running tools again and restoring an attempt. Asks first if more than the last answer would be
// removed, and offers Undo (RUN-12).
import { answerOf, copyOf } from "../ui/dom.js";
import { fill, words } from "../ui/i18n.js";
import { notice, settle } from "../ui/notice.js";
import { toast } from "../ui/toast.js";
import { live } from "./session.js";

// Actions that are refused while the agent works: the notice has a button that stops the agent and repeats the action.

/**
 * Carries out a request that the session may refuse: resolves to what `task` resolves to, or to null after a notice.
 * If it is refused because the agent works, the notice offers `label`: Stop, then `redo`. The notice is `about` a
 * subject that the next success settles; the offer also disappears when the agent is idle.
 */
export async function insist(task, { label = words.stopAndDo, tell = notice, redo = task, about = "action" } = {}) {
  try {
    const result = await task();
    if (result !== null) settle(about);
    return result;
  } catch (refusal) {
    const action = { label, run: () => stopFirst(redo, { label, tell, about }) };
    tell(refusal.message, refusal.code === "busy" ? { action, about: `${about} agent` } : { about });
    return null;
  }
}

/** Stops the agent and then carries out a request, like `insist`. */
export function stopFirst(task, options) {
  const later = async () => {
    await stopped();
    return insist(task, options);
  };
  return insist(later, options);
}

/** Resolves when the session reports that the agent is idle. Stop holds the queued messages. */
function stopped() {
  const life = new AbortController();
  return new Promise((resolve, reject) => {
    live.addEventListener("frame", ({ detail }) => detail.status === "idle" && resolve(), { signal: life.signal });
    live.addEventListener("state", ({ detail }) => detail.state === "closed" && reject(new Error(words.notDone)), {
      signal: life.signal,
    });
    live.request({ type: "cancel" }).then(({ stopping }) => stopping || resolve(), reject);
  }).finally(() => life.abort());
}

/** Asks for a new answer from a message on; the server decides which messages stay. */
export function retry({ id }, how = insist, atMost = 0) {
  const asks = { title: words.retryTitle, confirm: words.actionRetry, forks: true };
  return how(() => withdraw({ type: "retry", id }, asks, atMost), { label: words.stopAndRetry });
}

/** Runs the tools of a message's response again. */
export function runTools({ id }, how = insist) {
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

/** Asks the user to confirm a retry's removals; resolves to the confirmed number, "fork", or null. */
export async function askToRetry(id) {
  const found = await live.request({ type: "retry", id, preview: true });
  if (found.last_answer) return 0;
  const choice = await ask(found, { title: words.retryTitle, confirm: words.actionRetry, forks: true });
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
