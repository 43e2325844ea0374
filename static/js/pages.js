// Which part of a long session the list shows: it begins with the newest page, and can go to any message.
import htmx from "../vendor/htmx/htmx.esm.min.js";
import { beyond } from "./edges.js";
import { adopt } from "./messages.js";
import { live } from "./page.js";
import { parse } from "./patch.js";
import { textAt } from "./server.js";

const log = document.getElementById("log");
const list = document.getElementById("messages");

/** Shows a message with what stands around it, and calls `place` to go there; false when there is none. */
export const showAround = (id, place) => show(`?around=${encodeURIComponent(id)}`, place);

/** Shows the beginning, and calls `place` to go there. */
export const showOldest = (place) => show("?start=yes", place);

/** Shows the first messages at or after a moment, and calls `place` to go there; the newest if there are none. */
export const showSince = (moment, place) => show(`?since=${encodeURIComponent(moment.toISOString())}`, place);

/** Shows the end again. */
export const showNewest = () => show("", () => (log.scrollTop = log.scrollHeight));

document.addEventListener("htmx:config:request", ({ target, detail: { ctx } }) => {
  if (!["older", "newer"].includes(target.id)) return;
  ctx.known = live.revision;
  for (const [name, place] of Object.entries(beyond(target.id))) ctx.request.body.set(name, place);
});

document.addEventListener("htmx:after:swap", ({ detail: { ctx } }) => {
  if (ctx.known === undefined) return;
  const { revision } = document.getElementById(ctx.sourceElement.id).dataset;
  // What has changed since it was asked for may be missing in what came, or not have found what was on its way.
  if (live.revision > ctx.known || Number(revision) > ctx.known) live.sync(ctx.known);
});

async function show(query, place) {
  const known = live.revision;
  const html = await textAt(`${location.pathname}messages${query}`);
  if (html === null) return false;
  const page = parse(html);
  for (const id of ["older", "newer"]) {
    const end = page.querySelector(`#${id}`);
    end.removeAttribute("hx-swap-oob");
    document.getElementById(id).replaceWith(end);
  }
  list.replaceChildren(...page.children);
  adopt([...list.children]);
  place(); // before what is near the reader is loaded
  htmx.process(log);
  live.sync(known); // and the texts that are being written
  return true;
}
