// A message as it was written, in the place of what it looks like.
import { textAt } from "../net/http.js";
import { words } from "../ui/i18n.js";
import { notice, settle } from "../ui/notice.js";
import { make, parse } from "../ui/dom.js";
import { openBox, place, unlessOvertaken } from "../ui/popover.js";
import { localise } from "../ui/time.js";
import { wholeOf } from "./actions.js";

// Who and what made a message, when, and what it cost: beside it, without moving anything.

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

/** Shows the Markdown of a message, or what it looks like again. */
export async function toggle(message) {
  const shown = message.querySelector(":scope > .source");
  if (shown) return shown.remove();
  const text = await wholeOf(message);
  if (text === null) return notice(words.notLoaded);
  settle();
  if (message.querySelector(":scope > .source")) return; // asked for twice
  const properties = { className: "source", data: { own: "" }, tabIndex: 0, dir: "auto", ariaLabel: words.actionSource, role: "group" };
  message.append(make("pre", properties, text));
}
