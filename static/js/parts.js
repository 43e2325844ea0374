// The parts of the page that tell of the session itself: title, model, status, figures.
import { parse, patchChildren } from "./patch.js";
import { refresh } from "./refresh.js";

const page = document.getElementById("main");
const stop = document.querySelector("[data-action=stop]");
const model = document.getElementById("model");

/** Puts HTML into every place of that name. */
export function setPart(name, html) {
  for (const part of document.querySelectorAll(`[data-part="${CSS.escape(name)}"]`)) patchChildren(part, parse(html));
  if (name === "title") document.title = `${page.querySelector("[data-part=title]").textContent.trim()} · Parley`;
  if (name === "model") chooseModel();
}

export function setParts(parts) {
  for (const [name, html] of Object.entries(parts)) setPart(name, html);
}

/** What the agent does now, by the server's word. */
export function setStatus(status) {
  const turned = (page.dataset.status === "idle") !== (status === "idle");
  page.dataset.status = status;
  if (stop) stop.disabled = status === "idle";
  if (turned) refresh(document.getElementById("rail-list"));
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

/** Lets the picker show the session's model, whether it is on offer or not. */
export function chooseModel() {
  const present = document.querySelector("[data-part=model] [data-model]");
  if (!model || !present) return;
  const { provider, model: name } = present.dataset;
  let option = [...model.options].find((each) => each.value === name && each.dataset.provider === provider);
  if (!option) {
    option = new Option(present.textContent, name);
    option.dataset.provider = provider;
    model.prepend(option);
  }
  option.selected = true;
}
