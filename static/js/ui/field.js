// The composer's field and the limit of a message's length. The server refuses longer messages. It closes the
// connection of a client that sends a much longer one, so the page checks the length first (MSG-12).
import { TOUCH } from "./commands.js";
import { fireInput, replaceRange } from "./dom.js";
import { format, words } from "./i18n.js";
import { clearNotice, showNotice } from "./notice.js";

/** The composer's field, or null for viewers. */
export const field = document.getElementById("text");

/** Replaces the whole text. */
export function setText(text) {
  field.value = text;
  fireInput(field);
}

/** Fills in the stored text. Text that was typed before this module was loaded stays below it. */
export function initializeText(stored) {
  const isTouched = field.value !== field.defaultValue;
  if (!isTouched) field.value = stored;
  else if (stored !== field.defaultValue) field.value = [stored, field.value].filter(Boolean).join("\n");
}

/** Puts a text back into the field, above its present text. */
export function restoreText(text) {
  setText(field.value ? `${text}\n\n${field.value}` : text);
}

/** Puts a text back that the user was typing elsewhere, and moves the focus to its end, so that the user can continue. */
export function restoreTextAndFocus(text) {
  if (text) restoreText(text);
  field.focus({ preventScroll: true });
  const end = text ? text.length : field.value.length;
  field.setSelectionRange(end, end);
}

/** Replaces a range as if the text had been typed, so that Ctrl+Z undoes it. */
export function insertText(text, from = field.selectionStart, to = field.selectionEnd) {
  replaceRange(field, text, from, to);
}

/** Removes characters that messages cannot contain: NUL and lone surrogates. */
export function removeInvalidCharacters() {
  const lone = /[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]|\0/g;
  insertText(field.value.replace(lone, ""), 0, field.value.length);
}

/** Returns whether an input method handles a key. Safari sets `isComposing` too late, but then the key code is 229. */
export const isComposing = (event) => event.isComposing || event.keyCode === 229;

/** Returns whether a key sends the message: Ctrl+Enter, and Enter unless on phones or the user prefers otherwise. */
export function isSendKey(event) {
  if (event.key !== "Enter" || event.shiftKey || event.altKey || isComposing(event)) return false;
  if (event.ctrlKey || event.metaKey) return true;
  return !TOUCH.matches && document.documentElement.dataset.sendKey !== "ctrl_enter";
}

/**
 * Returns {text, from, to} for an opening prompt that the user has to complete: the text and the range to select.
 * Returns null for other prompts. A prompt has to be completed if it contains a "…", which is selected, ends with a
 * "…", which is left out, or ends with a colon.
 */
export function promptToComplete(prompt) {
  const whole = prompt.trimEnd();
  const text = whole.replace(/\s*…$/, "");
  const gap = text.lastIndexOf("…");
  if (gap >= 0) return { text, from: gap, to: gap + 1 };
  const isOpen = text !== whole || /[:：]$/.test(text);
  return isOpen ? { text: `${text} `, from: text.length + 1, to: text.length + 1 } : null;
}

let suggestion = ""; // the text that was suggested last

/** Fills in a suggested prompt, above the user's own text. Replaces an earlier suggestion that was not changed. */
export function suggestText(prompt) {
  const { text, from, to } = promptToComplete(prompt) ?? { text: prompt, from: prompt.length, to: prompt.length };
  if (field.value === suggestion) setText("");
  else if (suggestion && field.value.startsWith(`${suggestion}\n\n`)) setText(field.value.slice(suggestion.length + 2));
  suggestion = text;
  restoreText(text);
  field.focus();
  field.setSelectionRange(from, to);
}

/** Makes a field grow with its text in browsers without `field-sizing`. */
export function growWithText(field) {
  if (CSS.supports("field-sizing", "content")) return;
  const fit = () => {
    field.style.height = "auto";
    field.style.height = `${field.scrollHeight}px`;
  };
  field.addEventListener("input", fit);
  fit();
}

const limit = Number(field?.form.dataset.limit);
const numberFormat = new Intl.NumberFormat(document.documentElement.lang);

/** Returns whether the server accepts a text of this length. */
export const isWithinLimit = (text) => countCharacters(text) <= limit;

/** Returns whether the server accepts a text of this length. If not, shows a notice. */
export function checkLength(text) {
  const isShort = isWithinLimit(text);
  if (isShort) clearNotice("limit");
  else
    showNotice(
      format(words.tooLong, { count: numberFormat.format(countCharacters(text)), limit: numberFormat.format(limit) }),
      {
        about: "limit",
      },
    );
  return isShort;
}

// Characters as the server counts them. A string's length is in UTF-16 code units, of which there can be more.
function countCharacters(text) {
  if (text.length <= limit) return text.length;
  let count = 0;
  for (const _character of text) count += 1;
  return count;
}
