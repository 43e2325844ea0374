// Copies code blocks, outputs and links, and shows whether that worked. Over plain http there is no API for the clipboard: a
// shown text is selected and copied.
import { on } from "./commands.js";
import { make } from "./dom.js";
import { words } from "./i18n.js";
import { notice, say, settle } from "./notice.js";
import { toast } from "./toast.js";

const SHOWN_MS = 2000;

/** Copies text; where the page has no access to the clipboard, selects and copies the `shown` element instead. */
async function copyText(text, shown) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return Boolean(shown) && copyBySelection(shown);
  }
}

/** Makes a button copy an element's text and show the result in words that the button has as data. */
export function connectCopying(button, shown, textOf) {
  history.replaceState(null, "", location.href); // this page is the answer to a form: a reload must not send the form again
  button.addEventListener("click", async () => {
    const copied = await copyText(textOf(), shown);
    toast(copied ? button.dataset.copied : button.dataset.notCopied);
  });
}

function copyBySelection(source) {
  if (source.select) source.select();
  else getSelection().selectAllChildren(source);
  return document.execCommand("copy");
}

/** Copies the text that belongs to a button, and shows the result on the button for a moment. */
async function copyFor(button) {
  const source = button.closest(".code")?.querySelector("code") ?? document.getElementById(button.dataset.source);
  confirm(button, await copyText(textOf(source), source));
}

/** Shows on a button for a moment whether copying worked. */
export function confirm(button, copied) {
  if (button.firstChild) showWords(button, copied);
  else if (copied) showMark(button);
  if (copied) settle();
  if (copied) say(words.copied);
  else if (!button.firstChild) notice(words.notCopied);
}

/** Copies text that is not on the page; the focus stays where it is. */
export async function copyWords(text) {
  const field = make("textarea", { className: "sr-only", value: text });
  const focused = document.activeElement;
  (focused.closest("dialog") ?? document.body).append(field); // the page around an open dialog cannot be selected
  const copied = await copyText(text, field);
  field.remove();
  if (document.activeElement !== focused) focused.focus({ preventScroll: true });
  return copied;
}

/** Copies an address, and shows whether that worked. */
export async function copyLink(address) {
  toast((await copyWords(address)) ? words.linkCopied : words.notCopied);
}

/** Includes what is hidden behind "Show all"; leaves out a terminal's prompt. */
function textOf(source) {
  if (source.value !== undefined) return source.value;
  const parts = source.querySelectorAll("[data-copy]");
  return parts.length ? [...parts].map((part) => part.textContent).join("\n") : source.textContent;
}

function showWords(button, copied) {
  button.dataset.label ??= button.textContent;
  button.textContent = copied ? words.copied : words.notCopied;
  setTimeout(() => (button.textContent = button.dataset.label), SHOWN_MS);
}

function showMark(button) {
  button.classList.add("copied");
  setTimeout(() => button.classList.remove("copied"), SHOWN_MS);
}

export function connect() {
  on("copy-code", copyFor);
  on("copy", copyFor);
}
