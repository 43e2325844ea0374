// What the agent's work is in the way of: it is said so, and one press stops the agent and does it then.
import { notice, settle } from "./notice.js";
import { live } from "./page.js";
import { words } from "./words.js";

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
    live.addEventListener("state", ({ detail }) => detail.state === "closed" && reject(new Error(words.notDone)), { signal: life.signal });
    live.request({ type: "cancel" }).then(({ stopping }) => stopping || resolve(), reject);
  }).finally(() => life.abort());
}
