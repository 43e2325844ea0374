// One's own words again: arrow-up in an empty field brings back what was sent in this session, the newest first.
import { page } from "../messages/session.js";
import { keep, kept, parsed } from "../net/storage.js";
import { composing, field, write } from "../ui/field.js";

const MOST = 50;
const NAME = `parley:sent:${page.dataset.viewerId}:${page.dataset.session}`;
let found = []; // what is being looked through, the newest first
let place = -1;

/** Keeps a text that was sent. */
export function remember(text) {
  const sent = [...stored().filter((other) => other !== text), text];
  keep(NAME, JSON.stringify(sent.slice(-MOST)));
}

/** Arrow-up and arrow-down through what was sent; true when the key was that. */
export function looked(event) {
  if (composing(event) || event.shiftKey || event.ctrlKey || event.altKey || event.metaKey) return false;
  const looking = place >= 0 && field.value === found[place];
  if (!looking) place = -1;
  if (event.key === "ArrowUp" && (looking || !field.value)) return older();
  if (!looking || !["ArrowDown", "Escape"].includes(event.key)) return false;
  show(event.key === "Escape" ? -1 : place - 1);
  return true;
}

function older() {
  if (place < 0) found = sentHere();
  if (place + 1 < found.length) show(place + 1);
  return found.length > 0;
}

function show(number) {
  place = number;
  write(found[place] ?? "");
  field.setSelectionRange(field.value.length, field.value.length);
}

function sentHere() {
  const shown = document.querySelectorAll("#messages .user.mine .plain, #queue .queued.mine .queued-text");
  const texts = [...stored(), ...[...shown].map((element) => element.textContent)];
  return [...new Set(texts.reverse())].filter((text) => text.trim());
}

function stored() {
  const sent = parsed(kept(NAME));
  return Array.isArray(sent) ? sent : [];
}
