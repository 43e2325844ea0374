// Words to the person at this page: why something was refused, what was kept.
import { on } from "./actions.js";

on("dismiss", (button) => {
  button.closest(".notice").remove();
  (document.getElementById("text") ?? document.getElementById("main")).focus();
});

/** Shows one notice, with one thing that can be done about it; the next one takes its place. */
export function notice(text, { action = null } = {}) {
  const element = document.getElementById("notice").content.firstElementChild.cloneNode(true);
  element.querySelector("span").textContent = text;
  document.getElementById("notices").replaceChildren(element);
  if (action) addAction(element, action);
}

/** Whoever came by keyboard, from a message, goes on with it at once, and back from there. */
function addAction(element, { label, run }) {
  const before = document.activeElement;
  const button = Object.assign(document.createElement("button"), { type: "button", className: "button small", textContent: label });
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
