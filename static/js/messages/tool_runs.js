// Runs of tool calls: more than three finished calls in a row fold into one line, which unfolds them.
import { icon, make } from "../ui/dom.js";
import { fill, words } from "../ui/i18n.js";

const MOST_SHOWN = 3;
const MOST_NAMES = 2;
const list = document.getElementById("messages");
const opened = new Set(); // the first calls of the runs that the user has unfolded

/** Folds or unfolds the run that a message is in. */
export function fold(message) {
  if (!message?.matches("article.tool_group")) return;
  let first = message;
  while (isCall(first.previousElementSibling)) first = first.previousElementSibling;
  const calls = [];
  for (let call = first; isCall(call); call = call.nextElementSibling) calls.push(call);
  const folded = calls.filter(isFoldable);
  const head = folded.length > MOST_SHOWN ? folded[0] : null;
  const isOpen = folded.some(({ id }) => opened.has(id));
  for (const call of calls) {
    if (call !== head) call.querySelector(":scope > .tool-run")?.remove();
    call.classList.toggle("run", call === head && !isOpen);
    call.classList.toggle("folded", head !== null && call !== head && !isOpen && folded.includes(call));
  }
  if (head) say(head, folded, isOpen);
}

/** Unfolds a message, for a user who goes to it. */
export function unfold(message) {
  if (!message?.matches(".folded, .run")) return;
  opened.add(message.id);
  fold(message);
}

const isCall = (element) => element?.matches("article.tool_group") ?? false;

/** Whether a call can be folded: not if it failed or has terminal output, and not as the last message. */
function isFoldable(call) {
  const [card, next] = call.querySelector(":scope > .column").children;
  return (
    call !== list.lastElementChild && card.matches(".tool[data-state=done]:not([open])") && !next?.matches(".terminal")
  );
}

function say(head, calls, isOpen) {
  const button = head.querySelector(":scope > .tool-run") ?? head.appendChild(drawn());
  button.setAttribute("aria-expanded", String(isOpen));
  button.querySelector("span").textContent = named(calls);
}

function drawn() {
  const shown = [icon("chevron-right"), make("span"), icon("check")];
  const button = make("button", { type: "button", className: "tool-run", data: { own: "" } }, ...shown);
  button.addEventListener("click", () => toggle(button));
  return button;
}

function toggle(button) {
  const head = button.parentElement;
  const isOpen = button.getAttribute("aria-expanded") === "true";
  for (let call = head; isCall(call); call = call.nextElementSibling) {
    if (isOpen) opened.delete(call.id);
  }
  if (!isOpen) opened.add(head.id);
  fold(head);
}

/** Returns `read_file ×38, grep ×2`, or only the number if there are more names. */
function named(calls) {
  const counts = new Map();
  for (const call of calls) {
    const name = call.querySelector(".tool-name").textContent;
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  if (counts.size > MOST_NAMES) return fill(words.toolCalls, { count: calls.length });
  return [...counts].map(([name, count]) => (count > 1 ? `${name} ×${count}` : name)).join(", ");
}
