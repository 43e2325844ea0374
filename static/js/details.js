// Who and what made a message, when, and what it cost: beside it, without moving anything.
import { notice, settle } from "./notice.js";
import { parse } from "./patch.js";
import { openBox, place, unlessOvertaken } from "./popover.js";
import { textAt } from "./server.js";
import { localise } from "./time.js";
import { words } from "./words.js";

/** Shows the details of a message beside an element, which gets the focus back. */
export async function show(message, anchor) {
  const html = await unlessOvertaken(textAt(`${location.pathname}details?id=${message.id}`));
  if (html === undefined || !message.isConnected) return;
  if (html === null) return notice(words.notLoaded);
  // The toolbar's button may have gone to another message meanwhile.
  const box = openBox(message.contains(anchor) ? anchor : message, { className: "details", label: words.actionDetails });
  if (!box) return;
  settle();
  box.append(parse(html));
  localise(box);
  place();
  box.focus({ preventScroll: true });
}
