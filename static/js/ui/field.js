// How long a message may be. A longer one is refused, and a much longer one would end the connection (MSG-12).
import { TOUCH } from "./commands.js";
import { fill, words } from "./i18n.js";
import { notice, over } from "./notice.js";

// The field in which people write: what stands in it, and putting words into it.

/** Null for those who may only read. */
export const field = document.getElementById("text");

/** Writes these words in the place of all that stands there. */
export function write(words) {
  field.value = words;
  tell();
}

/** Begins with what was kept; what has been written since the page was shown, before this module was there, stays. */
export function begin(kept) {
  const isTouched = field.value !== field.defaultValue;
  if (!isTouched) field.value = kept;
  else if (kept !== field.defaultValue) field.value = [kept, field.value].filter(Boolean).join("\n");
}

/** Puts words back where they were written, before what stands there now. */
export function restore(words) {
  write(field.value ? `${words}\n${field.value}` : words);
}

/** Puts words in the place of a range, as if they had been typed: Ctrl+Z takes them away again. */
export function insert(words, from = field.selectionStart, to = field.selectionEnd) {
  field.focus();
  field.setSelectionRange(from, to);
  if (document.execCommand("insertText", false, words)) return;
  field.setRangeText(words, from, to, "end");
  tell();
}

/** Whether a key belongs to an input method that is composing a character (229: Safari says it too late). */
export const composing = (event) => event.isComposing || event.keyCode === 229;

/** Whether a key sends: Enter or Ctrl+Enter, as the person likes it. On a phone Enter breaks the line, the button sends. */
export function sends(event) {
  if (event.key !== "Enter" || event.shiftKey || event.altKey || composing(event)) return false;
  if (event.ctrlKey || event.metaKey) return true;
  return !TOUCH.matches && document.documentElement.dataset.sendKey !== "ctrl_enter";
}

/** Lets a field grow with its text, where the browser does not do it by `field-sizing`. */
export function grow(field) {
  if (CSS.supports("field-sizing", "content")) return;
  const fit = () => {
    field.style.height = "auto";
    field.style.height = `${field.scrollHeight}px`;
  };
  field.addEventListener("input", fit);
  fit();
}

function tell() {
  field.dispatchEvent(new InputEvent("input", { bubbles: true }));
}

const limit = Number(field?.form.dataset.limit);
const figures = new Intl.NumberFormat(document.documentElement.lang);

/** Whether the server takes a text of this length. */
export const isWithin = (text) => charactersOf(text) <= limit;

/** Whether the server takes a text of this length; tells the person if not. */
export function fits(text) {
  const isShort = isWithin(text);
  if (isShort) over("limit");
  else
    notice(fill(words.tooLong, { count: figures.format(charactersOf(text)), limit: figures.format(limit) }), {
      about: "limit",
    });
  return isShort;
}

// The server counts characters, a string's length are UTF-16 units.
function charactersOf(text) {
  if (text.length <= limit) return text.length;
  let count = 0;
  for (const _character of text) count += 1;
  return count;
}
