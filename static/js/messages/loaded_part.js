// The loaded part of a long session. At first it is the newest page, and later it can be any part.
import htmx from "../../vendor/htmx/htmx.esm.min.js";
import { fetchText } from "../net/http.js";
import { parseHtml } from "../ui/dom.js";
import { nextCursor, prepareRendered } from "./list.js";
import { live } from "./session.js";

const log = document.getElementById("log");
const list = document.getElementById("messages");

/** Loads a message and those around it. `goToTarget` scrolls to it. The result is that of `loadPart`. */
export const loadAround = (id, goToTarget) => loadPart(`?around=${encodeURIComponent(id)}`, goToTarget);

/** Loads the first page. `goToTarget` scrolls to its beginning. */
export const loadOldest = (goToTarget) => loadPart("?start=yes", goToTarget);

/** Loads the first messages at or after a time, or the newest messages. `goToTarget` scrolls to the target. */
export const loadSince = (moment, goToTarget) =>
  loadPart(`?since=${encodeURIComponent(moment.toISOString())}`, goToTarget);

/** Loads the newest page. */
export const loadNewest = () => loadPart("", () => (log.scrollTop = log.scrollHeight));

let lastRequest = 0; // the number of the last request for a part

/** Loads a part. Resolves to whether it exists, or to null if another part was requested in the meantime. */
async function loadPart(query, goToTarget) {
  const revision = live.revision;
  const number = ++lastRequest;
  const html = await fetchText(`${location.pathname}messages${query}`);
  if (number !== lastRequest) return null;
  if (html === null) return false;
  const page = parseHtml(html);
  for (const id of ["older", "newer"]) {
    const end = page.querySelector(`#${id}`);
    end.removeAttribute("hx-swap-oob");
    const previous = document.getElementById(id);
    htmx.trigger(previous, "htmx:abort"); // the messages of its pending request would not adjoin this part
    previous.replaceWith(end);
  }
  list.replaceChildren(...page.children);
  prepareRendered([...list.children]);
  goToTarget(); // before htmx looks at the scroll position to load more messages
  htmx.process(log);
  live.sync(revision); // the changes since the request, and the texts of streaming messages
  return true;
}

export function connect() {
  document.addEventListener("htmx:config:request", ({ target, detail: { ctx } }) => {
    if (!["older", "newer"].includes(target.id)) return;
    ctx.known = live.revision;
    for (const [name, place] of Object.entries(nextCursor(target.id))) ctx.request.body.set(name, place);
  });
  document.addEventListener("htmx:after:swap", ({ detail: { ctx } }) => {
    if (ctx.known === undefined) return;
    const { revision } = document.getElementById(ctx.sourceElement.id).dataset;
    // The response may lack later changes. Their frames may have been ignored, because the messages were not loaded.
    if (live.revision > ctx.known || Number(revision) > ctx.known) live.sync(ctx.known);
  });
}
