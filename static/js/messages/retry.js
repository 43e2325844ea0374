// Answering again, running tools again and restoring an attempt: asks first where more than the last answer goes, and can
// be undone (RUN-12).
import { answerOf, copyOf } from "../ui/dom.js";
import { fill, words } from "../ui/i18n.js";
import { notice, settle } from "../ui/notice.js";
import { toast } from "../ui/toast.js";
import { live } from "./session.js";

// What the agent's work is in the way of: it is said so, and one press stops the agent and does it then.

/**
 * Does something that the session may refuse (`deed` asks for it and returns what comes of it); resolves to that, or
 * to null after saying why not. Refused for the agent's work, it is offered as `label`: a stop, and then `redo`. The
 * notice is `about` something that the next success of the same settles; the offer goes when the agent is idle, too.
 */
export async function insist(deed, { label = words.stopAndDo, tell = notice, redo = deed, about = "action" } = {}) {
  try {
    const result = await deed();
    if (result !== null) settle(about);
    return result;
  } catch (refusal) {
    const action = { label, run: () => stopFirst(redo, { label, tell, about }) };
    tell(refusal.message, refusal.code === "busy" ? { action, about: `${about} agent` } : { about });
    return null;
  }
}

/** Stops the agent, and does something as soon as it has stopped; as `insist` does it. */
export function stopFirst(deed, options) {
  const later = async () => {
    await stopped();
    return insist(deed, options);
  };
  return insist(later, options);
}

/** Resolves when the agent is at rest, by the session's own word. What is queued is held by the stop. */
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
