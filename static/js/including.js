// Messages that were left out of what the model is sent, or taken in again, many at once.
import { parse } from "./patch.js";

const SAID = ".user, .assistant, .reasoning, .tool_group, .note";

/** Marks what stands in these places; not what was read from the rows after that had happened. */
export function include({ included, places, mark, revision }) {
  for (const element of document.querySelectorAll("#messages > [data-sequence]")) {
    const place = Number(element.dataset.sequence);
    if (!places.some(([first, last]) => first <= place && place <= last) || !element.matches(SAID)) continue;
    if (element.classList.contains("excluded") !== included || Number(element.dataset.revision) >= revision) continue;
    element.classList.toggle("excluded", !included);
    element.dataset.revision = revision;
    if (included) element.querySelector(".left-out")?.remove();
    else (element.querySelector(".meta") ?? element).prepend(parse(mark));
  }
}
