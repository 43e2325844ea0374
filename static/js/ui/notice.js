// Notices: why something was refused, what was kept. Each one stays until what it is about is over, or the reader goes on.
import { on, TOUCH } from "./commands.js";
import { copyOf, make } from "./dom.js";

const region = document.getElementById("notices");

/**
 * Shows a notice with an optional action; the next notice takes its place. `about` names what it is about, one or
 * several words: `settle` or `over` with one of them takes it away. Without it, it goes with the next thing that the
 * reader does and that succeeds.
 */
export function notice(text, { action = null, about = "" } = {}) {
  const element = copyOf("notice");
  element.dataset.about = about;
  element.querySelector("span").textContent = text;
  region.replaceChildren(element);
  if (action) addAction(element, action);
}

/** Something that the reader has done succeeded: takes the notice away that is about it, or about nothing special. */
export function settle(about = "") {
  over("");
  over(about);
}

/** Something is over by itself: takes the notice about it away. Other notices stay: they may not have been read. */
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

/** Whoever came by keyboard, from a message, goes on with it at once, and back from there. */
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

/** Reads words out. */
export function say(words) {
  document.getElementById("announcer").textContent = words;
}

const LONGEST = 300;

/** Reads a finished message of somebody else out, who it is from first; tokens are never read out. */
export function announce(element) {
  if (element.matches(".mine, .reasoning, .tool_group")) return;
  const text = element.querySelector(".prose, .plain")?.textContent.trim() ?? "";
  say(`${element.getAttribute("aria-label")}: ${shortened(text)}`);
}

/** The first sentences of a long text. */
function shortened(text) {
  if (text.length <= LONGEST) return text;
  const cut = text.slice(0, LONGEST);
  const end = Math.max(...[". ", "! ", "? ", "\n", "。", "！", "？"].map((mark) => cut.lastIndexOf(mark)));
  return `${end > LONGEST / 3 ? cut.slice(0, end + 1) : cut} …`;
}

export function connect() {
  on("dismiss", (button) => leave(button.closest(".notice")));
}
