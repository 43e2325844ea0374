// The attempts at an answer: ‹ 2/3 › under it, and the actions that show another one (RUN-12).
import { offer, on } from "../ui/commands.js";
import { icon, make } from "../ui/dom.js";
import { fill, words } from "../ui/i18n.js";
import { say } from "../ui/notice.js";
import { agreed } from "./actions.js";
import { insist } from "./insist.js";
import { lastMessage } from "./list.js";
import { canEdit, page } from "./session.js";

const list = document.getElementById("messages");
// The switch that the user has asked for: {id, by, number, focused}. Its messages are replaced when it is carried out.
let asked = null;

/** Returns the row that counts the attempts at the answer that a message ends, or null. */
const anchorOf = (message) => {
  const bar = message?.querySelector(":scope > .attempts");
  return bar ? document.getElementById(bar.dataset.of) : null;
};

/** Whether there is an attempt before the shown one (-1), or after it (1). */
export function canSwitch(message, by) {
  const anchor = canEdit && page.dataset.archived === "no" ? anchorOf(message) : null;
  const number = Number(anchor?.dataset.attempt) + by;
  return number >= 1 && number <= Number(anchor.dataset.attempts);
}

/** Shows the attempt before the shown one, or after it, to everyone. */
export function switchTo(message, by, how = insist) {
  const { id, dataset } = anchorOf(message);
  const number = Number(dataset.attempt) + by;
  const command = { type: "switch_attempt", id, number };
  const wanted = { id, by, number, focused: message.contains(document.activeElement) };
  const task = async () => {
    asked = wanted;
    let done = null;
    try {
      return (done = await agreed(command, { title: words.switchTitle, confirm: words.attemptSwitch }, 0));
    } finally {
      if (!done) asked = null; // what others show is not for this user's focus
    }
  };
  return how(task, { label: words.stopAndSwitch });
}

/** Puts the numbers of attempts under the last message of each answer that has several. */
function draw() {
  const bars = new Map([...list.querySelectorAll(".attempts")].map((bar) => [bar.dataset.of, bar]));
  for (const anchor of list.querySelectorAll(":scope > [data-attempts]")) {
    const bar = bars.get(anchor.id) ?? drawn(anchor.id);
    bars.delete(anchor.id);
    const message = endOf(anchor);
    if (bar.parentElement !== message) message.append(bar);
    dress(bar, anchor.dataset);
  }
  for (const bar of bars.values()) bar.remove();
}

/** Returns the last message of the answer that follows a row; the row itself, or what it follows, if there is none. */
function endOf(anchor) {
  let last = anchor;
  for (let next = anchor.nextElementSibling; next && !next.matches(".user"); next = next.nextElementSibling)
    if (next.matches("article.message")) last = next;
  while (!last.matches("article.message") && last.previousElementSibling) last = last.previousElementSibling;
  return last;
}

function drawn(of) {
  const number = make("span", { className: "attempt-number" });
  const [before, after] = canEdit ? [button(-1), button(1)] : ["", ""];
  return make("div", { className: "attempts", role: "group", data: { own: "", of } }, before, number, after);
}

function button(by) {
  const label = by < 0 ? words.attemptBefore : words.attemptAfter;
  const data = { action: "switch-attempt", by };
  const image = icon(by < 0 ? "chevron-left" : "chevron-right");
  return make("button", { type: "button", className: "icon-button", title: label, ariaLabel: label, data }, image);
}

function dress(bar, { attempts, attempt }) {
  const shown = `${attempt}/${attempts}`;
  const [before, number, after] = bar.children.length > 1 ? bar.children : [null, bar.firstElementChild, null];
  if (number.textContent === shown) return;
  number.textContent = shown;
  bar.ariaLabel = fill(words.attemptShown, { number: attempt, count: attempts });
  if (before) before.disabled = Number(attempt) <= 1;
  if (after) after.disabled = attempt === attempts;
  if (asked?.id === bar.dataset.of && asked.number === Number(attempt)) arrive(bar);
}

/** Announces the shown attempt, and returns the focus to the button that was pressed. */
function arrive(bar) {
  const wanted = bar.querySelector(`[data-by="${asked.by}"]:enabled`) ?? bar.querySelector("button:enabled");
  if (asked.focused) wanted?.focus({ preventScroll: true });
  asked = null;
  say(bar.ariaLabel);
}

export function connect() {
  on("switch-attempt", (pressed) => switchTo(pressed.closest("article"), Number(pressed.dataset.by)));
  for (const [by, id, label, slash] of [
    [-1, "attempt-before", words.attemptBefore, "previous"],
    [1, "attempt-after", words.attemptAfter, "next"],
  ])
    offer({
      id,
      label,
      words: words.attemptWords,
      icon: by < 0 ? "chevron-left" : "chevron-right",
      slash,
      run: () => switchTo(lastMessage(":has(> .attempts)"), by),
      can: () => canSwitch(lastMessage(":has(> .attempts)"), by),
    });
  new MutationObserver(draw).observe(list, { childList: true });
  new MutationObserver(draw).observe(list, { subtree: true, attributeFilter: ["data-attempts", "data-attempt"] });
  draw();
}
