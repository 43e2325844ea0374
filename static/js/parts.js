// The parts of the page that tell of the session itself: title, model, status, figures.
import { over, say } from "./notice.js";
import { parse, patchChildren } from "./patch.js";
import { showInTab } from "./title.js";
import { fill, words } from "./words.js";

const page = document.getElementById("main");
const stop = document.querySelector("[data-action=stop]");

/** Puts HTML into every place of that name. */
export function setPart(name, html) {
  for (const part of document.querySelectorAll(`[data-part="${CSS.escape(name)}"]`)) patchChildren(part, parse(html));
  if (name === "title") showInTab();
  if (name === "agent") showAgent();
}

export function setParts(parts) {
  for (const [name, html] of Object.entries(parts)) setPart(name, html);
}

/** Who is spoken to, where it is said: there is nothing to say of an agent that is the only one. */
function showAgent() {
  const title = page.querySelector("[data-part=agent] bdi")?.textContent;
  if (title) page.dataset.agent = title;
}

/** What the agent does now, by the server's word. */
export function setStatus(status) {
  const turned = (page.dataset.status === "idle") !== (status === "idle");
  page.dataset.status = status;
  if (stop) stop.disabled = status === "idle";
  if (status === "idle") over("agent");
  if (turned && status !== "idle") say(fill(words.isThinking, { name: page.dataset.agent || words.assistant }));
  if (turned) document.dispatchEvent(new CustomEvent("parley:rail", { detail: { now: true } }));
}

export const isIdle = () => page.dataset.status === "idle";

/** At once on send; the server's own word follows (UI-07). */
export function showThinking() {
  if (isIdle()) setPart("status", document.getElementById("thinking").innerHTML);
}

/** Nothing came of what was asked for. */
export function showIdleAgain() {
  if (isIdle()) setPart("status", "");
}
