// A message as it was written, in the place of what it looks like.
import { wholeOf } from "./message_menu.js";
import { notice, settle } from "./notice.js";
import { words } from "./words.js";

/** Shows the Markdown of a message, or what it looks like again. */
export async function toggle(message) {
  const shown = message.querySelector(":scope > .source");
  if (shown) return shown.remove();
  const text = await wholeOf(message);
  if (text === null) return notice(words.notLoaded);
  settle();
  if (message.querySelector(":scope > .source")) return; // asked for twice
  const element = document.createElement("pre");
  element.className = "source";
  element.dataset.own = "";
  element.tabIndex = 0;
  element.dir = "auto";
  element.setAttribute("aria-label", words.actionSource);
  element.setAttribute("role", "group");
  element.textContent = text;
  message.append(element);
}
