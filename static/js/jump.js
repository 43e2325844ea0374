// The line of a day opens a small box: to another day, to the first message, or back to the latest.
import { on } from "./actions.js";
import { close, openBox } from "./popover.js";
import { toEnd, toMoment, toStart } from "./scroll.js";
import { words } from "./words.js";

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

function go(way) {
  close();
  way();
}

/** A date as the browser's date field writes it, in the reader's zone: 2026-02-28. */
const localDay = (date) => [date.getFullYear(), date.getMonth() + 1, date.getDate()].map((part) => String(part).padStart(2, "0")).join("-");
