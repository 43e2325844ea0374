// Copies code blocks, outputs and links, and shows whether that worked. Browsers have no clipboard API on http pages,
// so the text is selected on the page and copied with execCommand.
import { onAction } from "./commands.js";
import { createElement } from "./dom.js";
import { words } from "./i18n.js";
import { announce, clearNoticeAfterSuccess, showNotice } from "./notice.js";
import { showToast } from "./toast.js";

const RESULT_MS = 2000;

/** Copies a text. Without a clipboard API, copies the element `shown` instead. Resolves to whether it worked. */
async function writeClipboard(text, shown) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return Boolean(shown) && copySelection(shown);
  }
}

/** Makes a button copy an element's text. The texts for the result are in the button's data attributes. */
export function connectCopyButton(button, shown, getText) {
  // This page is the answer to a form: a reload must not send the form again.
  history.replaceState(null, "", location.href);
  button.addEventListener("click", async () => {
    const copied = await writeClipboard(getText(), shown);
    showToast(copied ? button.dataset.copied : button.dataset.notCopied);
  });
}

function copySelection(source) {
  if (source.select) source.select();
  else getSelection().selectAllChildren(source);
  return document.execCommand("copy");
}

/** Copies the text that belongs to a button, and shows the result on the button for a moment. */
async function copySource(button) {
  const source = button.closest(".code")?.querySelector("code") ?? document.getElementById(button.dataset.source);
  showCopyResult(button, await writeClipboard(textToCopy(source), source));
}

/** Shows on a button for a moment whether copying worked: as its text, or as a check mark on an empty button. */
export function showCopyResult(button, copied) {
  if (button.firstChild) showResultText(button, copied);
  else if (copied) showCheckMark(button);
  if (copied) clearNoticeAfterSuccess();
  if (copied) announce(words.copied);
  else if (!button.firstChild) showNotice(words.notCopied);
}

/** Copies a text that the page need not show. Keeps the focus. Resolves to whether it worked. */
export async function copyText(text) {
  const field = createElement("textarea", { className: "sr-only", value: text });
  const focused = document.activeElement;
  (focused.closest("dialog") ?? document.body).append(field); // a modal dialog prevents selections outside of it
  const copied = await writeClipboard(text, field);
  field.remove();
  if (document.activeElement !== focused) focused.focus({ preventScroll: true });
  return copied;
}

/**
 * Copies a text that is being fetched. `text` is a promise for it, or for null if the request fails. Resolves to whether
 * it worked. Call it in the handler of the press: Safari refuses to copy later, but accepts a promise.
 */
export async function copyFetched(text) {
  const blob = text.then((fetched) => {
    if (fetched === null) throw new Error("The text could not be fetched");
    return new Blob([fetched], { type: "text/plain" });
  });
  blob.catch(() => {}); // handled below
  try {
    await navigator.clipboard.write([new ClipboardItem({ "text/plain": blob })]);
    return true;
  } catch {
    const fetched = await text;
    return fetched !== null && copyText(fetched);
  }
}

/** Copies an address, and shows whether that worked. */
export async function copyLink(address) {
  showToast((await copyText(address)) ? words.linkCopied : words.notCopied);
}

/** Returns the text to copy. Includes lines that are hidden behind "Show all", and leaves out a terminal's prompt. */
function textToCopy(source) {
  if (source.value !== undefined) return source.value;
  const parts = source.querySelectorAll("[data-copy]");
  return parts.length ? [...parts].map((part) => part.textContent).join("\n") : source.textContent;
}

function showResultText(button, copied) {
  button.dataset.label ??= button.textContent;
  button.textContent = copied ? words.copied : words.notCopied;
  setTimeout(() => (button.textContent = button.dataset.label), RESULT_MS);
}

function showCheckMark(button) {
  button.classList.add("copied");
  setTimeout(() => button.classList.remove("copied"), RESULT_MS);
}

export function connect() {
  onAction("copy-code", copySource);
  onAction("copy", copySource);
}
