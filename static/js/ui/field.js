// The limit of a message's length. The server refuses longer ones, and much longer ones would close the connection (MSG-12).
import { TOUCH } from "./commands.js";
import { fill, words } from "./i18n.js";
import { notice, over } from "./notice.js";

// The composer's field and its text.

/** Null for viewers. */
export const field = document.getElementById("text");

/** Replaces the whole text. */
export function write(words) {
  field.value = words;
  tell();
}

/** Starts with the stored text, but keeps what was typed before this module was loaded. */
export function begin(kept) {
  const isTouched = field.value !== field.defaultValue;
  if (!isTouched) field.value = kept;
  else if (kept !== field.defaultValue) field.value = [kept, field.value].filter(Boolean).join("\n");
}

/** Puts a text back, above the present one. */
export function restore(words) {
  write(field.value ? `${words}\n\n${field.value}` : words);
}

/** Puts a text back that was being typed elsewhere, with the caret at its end: the next key continues it. */
export function restoreTyped(text) {
  if (text) restore(text);
  field.focus({ preventScroll: true });
  const end = text ? text.length : field.value.length;
  field.setSelectionRange(end, end);
}

/** Replaces a range as if the text had been typed, so that Ctrl+Z undoes it. */
export function insert(words, from = field.selectionStart, to = field.selectionEnd) {
  field.focus();
  field.setSelectionRange(from, to);
  if (document.execCommand("insertText", false, words)) return;
  field.setRangeText(words, from, to, "end");
  tell();
}

/** Removes the characters that no message can have: NUL and halves of pairs. */
export function cleanText() {
  const lone = /[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]|\0/g;
  insert(field.value.replace(lone, ""), 0, field.value.length);
}

/** Whether a key belongs to an input method that is composing a character (229: Safari sets `isComposing` too late). */
export const composing = (event) => event.isComposing || event.keyCode === 229;

/** Whether a key sends: Enter or Ctrl+Enter, by the user's preference. On phones only the button sends. */
export function sends(event) {
  if (event.key !== "Enter" || event.shiftKey || event.altKey || composing(event)) return false;
  if (event.ctrlKey || event.metaKey) return true;
  return !TOUCH.matches && document.documentElement.dataset.sendKey !== "ctrl_enter";
}

/**
 * Returns how an opening prompt that the user has to complete is put into the field, {text, from, to}: one with a "…",
 * which is selected or, at the end, left out, or with a colon at its end. Null for others.
 */
export function unfinished(prompt) {
  const whole = prompt.trimEnd();
  const text = whole.replace(/\s*…$/, "");
  const gap = text.lastIndexOf("…");
  if (gap >= 0) return { text, from: gap, to: gap + 1 };
  const isOpen = text !== whole || /[:：]$/.test(text);
  return isOpen ? { text: `${text} `, from: text.length + 1, to: text.length + 1 } : null;
}

/** Makes a field grow with its text in browsers without `field-sizing`. */
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

/** Whether the server accepts a text of this length. */
export const isWithin = (text) => charactersOf(text) <= limit;

/** Whether the server accepts a text of this length; shows a notice if not. */
export function fits(text) {
  const isShort = isWithin(text);
  if (isShort) over("limit");
  else
    notice(fill(words.tooLong, { count: figures.format(charactersOf(text)), limit: figures.format(limit) }), {
      about: "limit",
    });
  return isShort;
}

// The server counts characters; a string's length is in UTF-16 units.
function charactersOf(text) {
  if (text.length <= limit) return text.length;
  let count = 0;
  for (const _character of text) count += 1;
  return count;
}
