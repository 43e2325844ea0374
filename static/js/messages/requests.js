// Requests that the server refuses while the agent works. The refusal is shown with a button that stops the agent and
// tries again.
import { words } from "../ui/i18n.js";
import { clearNoticeAfterSuccess, showNotice } from "../ui/notice.js";
import { live } from "./session.js";

/**
 * Runs `task`, which sends a request, and resolves to its result. If the request is refused, shows the reason with
 * `report` and resolves to null. The notice stays until a request with the same `about` succeeds. If the request is
 * refused because the agent works, the notice has a button `label`, which stops the agent and runs `redo`, and
 * disappears when the agent is idle.
 */
export async function tryRequest(
  task,
  { label = words.stopAndDo, report = showNotice, redo = task, about = "action" } = {},
) {
  try {
    const result = await task();
    if (result !== null) clearNoticeAfterSuccess(about);
    return result;
  } catch (refusal) {
    const action = { label, run: () => stopAgentAndTry(redo, { label, report, about }) };
    report(refusal.message, refusal.code === "busy" ? { action, about: `${about} agent` } : { about });
    return null;
  }
}

/** Stops the agent and then runs a request like `tryRequest`. */
export function stopAgentAndTry(task, options) {
  const later = async () => {
    await stopAgent();
    return tryRequest(task, options);
  };
  return tryRequest(later, options);
}

/** Stops the agent, which puts queued messages on hold. Resolves when the session reports that the agent is idle. */
function stopAgent() {
  const listeners = new AbortController();
  return new Promise((resolve, reject) => {
    live.addEventListener("frame", ({ detail }) => detail.status === "idle" && resolve(), { signal: listeners.signal });
    live.addEventListener("state", ({ detail }) => detail.state === "closed" && reject(new Error(words.notDone)), {
      signal: listeners.signal,
    });
    live.request({ type: "cancel" }).then(({ stopping }) => stopping || resolve(), reject);
  }).finally(() => listeners.abort());
}
