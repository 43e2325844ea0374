// The attempts at an answer: the counter ‹ 2/3 › below it, and switching to another attempt (RUN-12).
import { addCommand, onAction } from "../ui/commands.js";
import { createElement, createIcon } from "../ui/dom.js";
import { format, words } from "../ui/i18n.js";
import { announce } from "../ui/notice.js";
import { lastMessage } from "./list.js";
import { tryRequest } from "./requests.js";
import { sendConfirmed, withdrawUndo } from "./retry.js";
import { canEdit, page } from "./session.js";

const list = document.getElementById("messages");
// The switch that the user has requested, as {id, by, number, focused}, until the messages of the attempt arrive.
let pendingSwitch = null;

/** Returns the message before an answer, which has the numbers of its attempts. `message` has the answer's counter. */
const anchorOf = (message) => {
  const bar = message?.querySelector(":scope > .attempts");
  return bar ? document.getElementById(bar.dataset.of) : null;
};

/** Returns whether there is an attempt before the shown one (-1) or after it (1). */
export function canSwitchAttempt(message, by) {
  const anchor = canEdit && page.dataset.archived === "no" ? anchorOf(message) : null;
  const number = Number(anchor?.dataset.attempt) + by;
  return number >= 1 && number <= Number(anchor.dataset.attempts);
}

/** Shows the attempt before the shown one (-1) or after it (1), for all users. */
export function switchAttempt(message, by, request = tryRequest) {
  const { id, dataset } = anchorOf(message);
  const number = Number(dataset.attempt) + by;
  const command = { type: "switch_attempt", id, number };
  const wanted = { id, by, number, focused: message.contains(document.activeElement) };
  const task = async () => {
    pendingSwitch = wanted;
    let done = null;
    try {
      done = await sendConfirmed(command, { title: words.switchTitle, confirm: words.attemptSwitch }, 0);
      if (done) withdrawUndo();
      return done;
    } finally {
      if (!done) pendingSwitch = null; // a switch by another user must not move this user's focus
    }
  };
  return request(task, { label: words.stopAndSwitch });
}

/** Puts the counter of attempts below the last message of each answer that has several attempts. */
function updateBars() {
  const bars = new Map([...list.querySelectorAll(".attempts")].map((bar) => [bar.dataset.of, bar]));
  let isMoved = false; // later counters are moved, too, because those below the same message keep their order
  for (const anchor of list.querySelectorAll(":scope > [data-attempts]")) {
    const bar = bars.get(anchor.id) ?? createBar(anchor.id);
    bars.delete(anchor.id);
    const message = lastOfAnswer(anchor);
    isMoved ||= bar.parentElement !== message;
    if (isMoved) message.append(bar);
    updateBar(bar, anchor.dataset);
  }
  for (const bar of bars.values()) bar.remove();
}

/** Returns the last message of the answer after an element. If there is none, returns the message at or before it. */
function lastOfAnswer(anchor) {
  let last = anchor;
  for (let next = anchor.nextElementSibling; next && !next.matches(".user"); next = next.nextElementSibling)
    if (next.matches("article.message")) last = next;
  while (!last.matches("article.message") && last.previousElementSibling) last = last.previousElementSibling;
  return last;
}

function createBar(of) {
  const number = createElement("span", { className: "attempt-number" });
  const [before, after] = canEdit ? [createSwitchButton(-1), createSwitchButton(1)] : ["", ""];
  return createElement("div", { className: "attempts", role: "group", data: { own: "", of } }, before, number, after);
}

function createSwitchButton(by) {
  const label = by < 0 ? words.attemptBefore : words.attemptAfter;
  const data = { action: "switch-attempt", by };
  const image = createIcon(by < 0 ? "chevron-left" : "chevron-right");
  return createElement(
    "button",
    { type: "button", className: "icon-button", title: label, ariaLabel: label, data },
    image,
  );
}

function updateBar(bar, { attempts, attempt }) {
  const shown = `${attempt}/${attempts}`;
  const [before, number, after] = bar.children.length > 1 ? bar.children : [null, bar.firstElementChild, null];
  if (number.textContent === shown) return;
  number.textContent = shown;
  bar.ariaLabel = format(words.attemptShown, { number: attempt, count: attempts });
  if (before) before.disabled = Number(attempt) <= 1;
  if (after) after.disabled = attempt === attempts;
  if (pendingSwitch?.id === bar.dataset.of && pendingSwitch.number === Number(attempt)) finishSwitch(bar);
}

/**
 * Announces the shown attempt. Moves the focus back to the button that was pressed, unless the user has moved the focus
 * in the meantime.
 */
function finishSwitch(bar) {
  const wanted = bar.querySelector(`[data-by="${pendingSwitch.by}"]:enabled`) ?? bar.querySelector("button:enabled");
  // The focus of a removed message may have moved to another message.
  const isFree = document.activeElement.matches("body, #log, .message, .attempts button");
  if (pendingSwitch.focused && isFree) wanted?.focus({ preventScroll: true });
  pendingSwitch = null;
  announce(bar.ariaLabel);
}

export function connect() {
  onAction("switch-attempt", (pressed) => switchAttempt(pressed.closest("article"), Number(pressed.dataset.by)));
  for (const [by, id, label, slash] of [
    [-1, "attempt-before", words.attemptBefore, "previous"],
    [1, "attempt-after", words.attemptAfter, "next"],
  ])
    addCommand({
      id,
      label,
      keywords: words.attemptWords,
      icon: by < 0 ? "chevron-left" : "chevron-right",
      slash,
      run: () => switchAttempt(lastMessage(":has(> .attempts)"), by),
      can: () => canSwitchAttempt(lastMessage(":has(> .attempts)"), by),
    });
  new MutationObserver(updateBars).observe(list, { childList: true });
  new MutationObserver(updateBars).observe(list, { subtree: true, attributeFilter: ["data-attempts", "data-attempt"] });
  updateBars();
}
