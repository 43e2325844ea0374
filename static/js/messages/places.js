// Links to single messages (`#m_…`), wherever in the session they are.
import { on } from "../ui/commands.js";
import { words } from "../ui/i18n.js";
import { notice } from "../ui/notice.js";
import { close, openBox } from "../ui/popover.js";
import { restore, take, toEnd, toMoment, toStart } from "./scroll.js";

// The line of a day opens a small box for going to another day, to the first message, or to the latest.

function go(way) {
  close();
  way();
}

/** Formats a date for a date field, in the user's time zone: 2026-02-28. */
const localDay = (date) =>
  [date.getFullYear(), date.getMonth() + 1, date.getDate()].map((part) => String(part).padStart(2, "0")).join("-");

function connectJump() {
  on("jump", (button) => {
    const box = openBox(button, { className: "jump", label: words.jump });
    if (!box) return;
    box.append(document.getElementById("jump").content.cloneNode(true));
    const field = box.querySelector("input");
    field.max = localDay(new Date());
    field.value = localDay(new Date(Number(button.parentElement.dataset.of)));
    box.querySelector("form").addEventListener("submit", (event) => {
      event.preventDefault();
      if (field.value) go(() => toMoment(new Date(`${field.value}T00:00`)));
    });
    box.addEventListener("click", ({ target }) => {
      const way = { start: toStart, end: toEnd }[target.closest("[data-to]")?.dataset.to];
      if (way) go(way);
    });
    field.focus();
  });
}

const ADDRESS = /^#(m_[0-9a-z]+)$/;
const log = document.getElementById("log");

/** Goes to a message, loading the ones around it if necessary, and highlights it for a moment unless `quietly`. */
export async function reveal(id, { quietly = false } = {}) {
  if (!(await take({ id, top: log.clientHeight / 2 }, bring))) return notice(words.messageGone);
  if (quietly) return;
  const message = document.getElementById(id);
  message.focus({ preventScroll: true });
  flash(message);
}

/** Goes to the message in the address, or to the stored position. */
async function connectDeeplink() {
  addEventListener("hashchange", follow);
  document.addEventListener("click", ({ target }) => target.closest?.("a[href]")?.href === location.href && follow());
  if (!(await restore())) await follow();
}

async function follow() {
  const id = ADDRESS.exec(location.hash)?.[1];
  if (id) await reveal(id);
}

function bring(message) {
  message.scrollIntoView({ block: message.offsetHeight > log.clientHeight * 0.8 ? "start" : "center" });
}

function flash(message) {
  const accent = getComputedStyle(message).getPropertyValue("--accent-soft");
  const ground = [
    { backgroundColor: accent, borderRadius: "10px" },
    { backgroundColor: accent, offset: 0.6 },
    { backgroundColor: "transparent" },
  ];
  message.animate(ground, { duration: 2400, easing: "ease-out" });
}

export function connect() {
  connectJump();
  connectDeeplink();
}
