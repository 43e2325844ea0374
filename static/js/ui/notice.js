// Notices, such as why a request was refused. A notice stays until its subject is settled or the user goes on.
import { on, TOUCH } from "./commands.js";
import { copyOf, make } from "./dom.js";

const region = document.getElementById("notices");

/**
 * Shows a notice with an optional action, in place of the previous one. `about` names its subject in one or
 * several words: `settle` or `over` with one of them removes it. Without a subject it is removed by the next
 * action of the user that succeeds.
 */
export function notice(text, { action = null, about = "" } = {}) {
  const element = copyOf("notice");
  element.dataset.about = about;
  element.querySelector("span").textContent = text;
  region.replaceChildren(element);
  if (action) addAction(element, action);
}

/** Removes the notice about a subject, or without one, after the user's action has succeeded. */
export function settle(about = "") {
  over("");
  over(about);
}

/** Removes the notice about a subject that has ended by itself. Others stay: they may not have been read. */
export function over(about) {
  const shown = region?.firstElementChild;
  if (shown?.dataset.about.split(" ").includes(about)) leave(shown);
}

/** Removes a notice. Focus that was in it goes to the composer, but not where that would open a keyboard. */
function leave(element) {
  const hadFocus = element.contains(document.activeElement);
  element.remove();
  if (!hadFocus) return;
  const field = TOUCH.matches ? null : document.getElementById("text");
  (field ?? document.getElementById("main")).focus({ preventScroll: true });
}

/** Moves the focus of a keyboard user from a message to the notice's action, and back afterwards. */
function addAction(element, { label, run }) {
  const before = document.activeElement;
  const button = make("button", { type: "button", className: "button small", textContent: label });
  button.addEventListener("click", () => {
    element.remove();
    (before.isConnected ? before : document.getElementById("main")).focus({ preventScroll: true });
    run();
  });
  element.querySelector("span").after(button);
  if (before.matches("article.message")) button.focus();
}

/** Announces a text to screen readers. */
export function say(words) {
  document.getElementById("announcer").textContent = words;
}

const LONGEST = 300;

/** Announces a finished message of another author, the name first. Tokens are never announced. */
export function announce(element) {
  if (element.matches(".mine, .reasoning, .tool_group")) return;
  const body = element.querySelector(".prose, .plain");
  const text = body ? linesOf(body) : "";
  say(`${element.getAttribute("aria-label")}: ${shortened(text)}`);
}

/** Returns a text with a line for each of its paragraphs, items and cells, which HTML does not separate. */
function linesOf(body) {
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
function shortened(text) {
  if (text.length <= LONGEST) return text;
  const cut = text.slice(0, LONGEST);
  const end = Math.max(...[". ", "! ", "? ", "\n", "。", "！", "？"].map((mark) => cut.lastIndexOf(mark)));
  return `${end > LONGEST / 3 ? cut.slice(0, end + 1) : cut} …`;
}

export function connect() {
  on("dismiss", (button) => leave(button.closest(".notice")));
}
