// Notices, such as the reason why a request was refused, and announcements to screen readers.
import { onAction, TOUCH } from "./commands.js";
import { cloneTemplate, createElement } from "./dom.js";
import { writeLive } from "./live_region.js";

const region = document.getElementById("notices");

/**
 * Shows a notice with an optional action {label, run}, in place of the previous notice. `about` contains its subjects,
 * separated by spaces. The notice stays until `clearNotice` or `clearNoticeAfterSuccess` is called with one of them. A
 * notice without a subject stays until the user's next successful action.
 */
export function showNotice(text, { action = null, about = "" } = {}) {
  const element = cloneTemplate("notice");
  element.dataset.about = about;
  element.querySelector("span").textContent = text;
  region.replaceChildren(element);
  if (action) addAction(element, action);
}

/** Removes the notice about this subject or without a subject, because an action of the user has succeeded. */
export function clearNoticeAfterSuccess(about = "") {
  clearNotice("");
  clearNotice(about);
}

/** Removes the notice about a subject, which no longer applies. Other notices stay, so that the user can read them. */
export function clearNotice(about) {
  const shown = region?.firstElementChild;
  if (shown?.dataset.about.split(" ").includes(about)) removeNotice(shown);
}

/** Removes a notice. If the focus was in it, moves the focus to the composer, or to the page on touch screens. */
function removeNotice(element) {
  const hadFocus = element.contains(document.activeElement);
  element.remove();
  if (!hadFocus) return;
  const field = TOUCH.matches ? null : document.getElementById("text");
  (field ?? document.getElementById("main")).focus({ preventScroll: true });
}

/** Moves the focus of a keyboard user from a message to the notice's action, and back afterwards. */
function addAction(element, { label, run }) {
  const before = document.activeElement;
  const button = createElement("button", { type: "button", className: "button small", textContent: label });
  button.addEventListener("click", () => {
    element.remove();
    (before.isConnected ? before : document.getElementById("main")).focus({ preventScroll: true });
    run();
  });
  element.querySelector("span").after(button);
  if (before.matches("article.message")) button.focus();
}

const announcer = document.getElementById("announcer");
const MAX_TOGETHER = 3; // a page that reconnects can get many messages at once
const collected = [];

/** Announces a text to screen readers, with others of the same moment, which would replace each other unread. */
export function announce(text) {
  if (!collected.length) writeLive(announcer, writeCollected);
  collected.push(text);
}

/** Writes the collected texts. A text that is repeated gets a space, because only changes are announced. */
function writeCollected() {
  const text = collected.splice(0).slice(-MAX_TOGETHER).join("\n");
  announcer.textContent = announcer.textContent === text ? text + "\u00a0" : text;
}

const MAX_ANNOUNCED = 300;

/**
 * Announces a finished message: its author, if it has one, and the beginning of its text. Leaves out messages of the
 * user.
 */
export function announceMessage(element) {
  if (element.matches(".mine, .reasoning, .tool_group")) return;
  const name = element.ariaLabel;
  // Markers have a button after their text. Notes and failed cards contain only text.
  const body = element.querySelector(".prose, .plain, .marker > bdi") ?? (name ? null : element);
  const text = body ? shorten(textLines(body)) : "";
  announce(name ? `${name}: ${text}` : text);
}

/** Returns the text of an element with each paragraph, item and cell on its own line. */
function textLines(body) {
  const parts = [];
  const walker = document.createTreeWalker(body, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT);
  while (walker.nextNode()) {
    const node = walker.currentNode;
    if (node.nodeType === Node.TEXT_NODE) parts.push(node.data);
    else if (node.matches("div, p, li, th, td, h1, h2, h3, h4, h5, h6, blockquote, pre")) parts.push("\n");
  }
  return parts
    .join("")
    .replace(/\n{2,}/g, "\n")
    .trim();
}

/** Returns the first sentences of a long text. */
function shorten(text) {
  if (text.length <= MAX_ANNOUNCED) return text;
  const cut = text.slice(0, MAX_ANNOUNCED);
  const end = Math.max(...[". ", "! ", "? ", "\n", "。", "！", "？"].map((mark) => cut.lastIndexOf(mark)));
  return `${end > MAX_ANNOUNCED / 3 ? cut.slice(0, end + 1) : cut} …`;
}

export function connect() {
  onAction("dismiss", (button) => removeNotice(button.closest(".notice")));
}
