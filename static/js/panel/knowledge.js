// The files of the workspace that the session's agents use, chosen in the panel.
import { insist } from "../messages/insist.js";
import { live } from "../messages/session.js";

const ALL = "*";
const body = document.getElementById("panel-body");
const boxes = () => [...body.querySelectorAll("[data-knowledge]")];
let asking = 0;

/** Shows what the server says, unless a change is on its way there. */
export function follow() {
  if (asking) return;
  for (const box of boxes()) box.checked = box.hasAttribute("checked");
}

async function choose(box) {
  const isAll = box.dataset.knowledge === ALL;
  const single = boxes().filter(({ dataset, checked }) => dataset.knowledge !== ALL && checked);
  const knowledge = isAll && box.checked ? [ALL] : isAll ? [] : single.map(({ dataset }) => dataset.knowledge);
  asking += 1;
  const done = await insist(() => live.request({ type: "configure", knowledge }));
  asking -= 1;
  if (!done) follow();
}

export function connect() {
  body.addEventListener("change", ({ target }) => target.dataset.knowledge && choose(target));
}
