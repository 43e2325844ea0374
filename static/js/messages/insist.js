// Requests that are refused while the agent works: the notice has a button that stops the agent and repeats the request.
import { words } from "../ui/i18n.js";
import { notice, settle } from "../ui/notice.js";
import { live } from "./session.js";

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
