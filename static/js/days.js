// Lines between the days of a session, by the reader's own midnight.
import { formatter } from "./time.js";
import { words } from "./words.js";

const A_DAY = 86_400_000;
const relative = new Intl.RelativeTimeFormat(document.documentElement.lang, { numeric: "auto" });

/** Notes on a message the day it is of. */
export function note(element) {
  const time = element.querySelector("time[datetime]");
  const date = time && new Date(time.dateTime);
  if (date && !Number.isNaN(date.getTime())) element.dataset.day = new Date(date).setHours(0, 0, 0, 0);
}

/** Puts a day's line before a message that begins it, and takes it away from one that does not. */
export function mark(element) {
  if (!element?.dataset.day) return;
  const line = lineBefore(element);
  let before = (line ?? element).previousElementSibling;
  while (before && !before.dataset.sequence) before = dropped(before);
  while (before && !before.dataset.day) before = before.previousElementSibling;
  if (before?.dataset.day === element.dataset.day) line?.remove();
  else if (line) say(line, element.dataset.day);
  else element.before(say(document.createElement("h2"), element.dataset.day));
}

/** Takes away a line that no message stands below any more. */
export function unmark(list) {
  for (const line of list.querySelectorAll(":scope > .day")) {
    if (!line.nextElementSibling?.dataset.sequence) line.remove();
  }
}

/** After midnight "Today" is "Yesterday"; `whole` dates are for paper, which is read on any day. */
export function renew(list, { whole = false } = {}) {
  for (const line of list.querySelectorAll(":scope > .day")) {
    say(line, line.dataset.of);
    if (whole) line.firstElementChild.textContent = formatter({ dateStyle: "full" }).format(Number(line.dataset.of));
  }
}

const lineBefore = (element) => (element.previousElementSibling?.className === "day" ? element.previousElementSibling : null);

function dropped(line) {
  const before = line.previousElementSibling;
  line.remove();
  return before;
}

function say(line, day) {
  line.className = "day";
  line.dataset.of = day;
  if (!line.firstElementChild) line.append(button());
  line.firstElementChild.textContent = named(Number(day));
  return line;
}

/** Opens the box of jump.js. */
function button() {
  const element = Object.assign(document.createElement("button"), { type: "button", title: words.jump });
  element.dataset.action = "jump";
  element.setAttribute("aria-haspopup", "dialog");
  return element;
}

function named(day) {
  const today = new Date().setHours(0, 0, 0, 0);
  const ago = Math.round((today - day) / A_DAY);
  if (ago === 0 || ago === 1) return capital(relative.format(-ago, "day"));
  if (ago > 1 && ago < 7) return capital(formatter({ weekday: "long" }).format(day));
  const isThisYear = new Date(day).getFullYear() === new Date().getFullYear();
  const year = isThisYear ? {} : { year: "numeric" };
  return capital(formatter({ weekday: "long", day: "numeric", month: "long", ...year }).format(day));
}

const capital = (text) => text.charAt(0).toLocaleUpperCase() + text.slice(1);
