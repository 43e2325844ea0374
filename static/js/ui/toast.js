// Toasts: short messages about the last action, often with Undo. They stay while the user looks at them.
import { TOUCH } from "./commands.js";
import { copyOf, make } from "./dom.js";

const LOOK = 5;
const DECIDE = 10;
const MOST = 4;
const region = document.getElementById("toasts");
let before = null; // what had the focus before a toast had it

/** Shows `text` for some seconds, with an optional action. Returns a function that removes it. */
export function toast(text, { action = null, seconds = action ? DECIDE : LOOK } = {}) {
  if (!action) forget(text);
  const element = copyOf("toast");
  element.querySelector(".toast-text").textContent = text;
  if (action) addAction(element, action);
  bringUp();
  region.append(element);
  while (region.children.length > MOST) region.firstElementChild.remove();
  return watch(element, seconds);
}

/** Replaces a toast with the same text. */
function forget(text) {
  const said = [...region.children].find(
    (each) => !each.querySelector(".toast-action") && each.querySelector(".toast-text").textContent === text,
  );
  if (said) leave(said);
}

function addAction(element, { label, run }) {
  const button = make("button", { type: "button", className: "toast-action", textContent: label });
  button.addEventListener("click", () => {
    leave(element);
    run();
  });
  element.querySelector(".toast-text").after(button);
}

/** Counts down, except on hover, with the focus in it, or while the page is hidden. */
function watch(element, seconds) {
  let timer = 0;
  const go = () => {
    clearTimeout(timer);
    if (!element.matches(":hover, :focus-within") && !document.hidden)
      timer = setTimeout(() => leave(element), seconds * 1000);
  };
  const hold = () => clearTimeout(timer);
  for (const name of ["pointerenter", "focusin"]) element.addEventListener(name, hold);
  for (const name of ["pointerleave", "focusout"]) element.addEventListener(name, () => requestAnimationFrame(go));
  element.querySelector(".toast-close").addEventListener("click", () => leave(element));
  document.addEventListener("visibilitychange", () => (document.hidden ? hold() : go()), { signal: lifeOf(element) });
  go();
  return () => leave(element);
}

const lives = new WeakMap();

function lifeOf(element) {
  const life = new AbortController();
  lives.set(element, life);
  return life.signal;
}

function leave(element) {
  lives.get(element)?.abort();
  const hadFocus = element.contains(document.activeElement);
  element.remove();
  if (hadFocus) (region.querySelector("button") ?? wayBack())?.focus({ preventScroll: true });
}

/** Returns what had the focus before, or what is there instead; on phones not the field, which opens the keyboard. */
function wayBack() {
  const ways = [before, TOUCH.matches ? null : document.getElementById("text"), document.getElementById("main")];
  return ways.find((way) => way?.isConnected && way.checkVisibility());
}

/** A modal dialog makes the rest of the page inert: while one is open, toasts are inside it. */
function bringUp() {
  const dialog = [...document.querySelectorAll("dialog:modal")].at(-1);
  const place = dialog ?? document.body;
  if (region.parentElement === place) return;
  place.append(region);
  dialog?.addEventListener("close", () => document.body.append(region), { once: true });
}

export function connect() {
  document.addEventListener(
    "keydown",
    (event) => {
      if (event.key === "F8" && region.lastElementChild) {
        event.preventDefault();
        region.lastElementChild.querySelector("button").focus();
      } else if (event.key === "Escape" && region.contains(event.target)) {
        event.stopPropagation();
        event.preventDefault();
        leave(event.target.closest(".toast"));
      }
    },
    true,
  );
  region?.addEventListener("focusin", ({ relatedTarget }) => {
    if (!region.contains(relatedTarget)) before = relatedTarget;
  });
  // Messages that the server rendered with the page disappear like the others.
  for (const element of region?.children ?? []) watch(element, element.querySelector("form") ? DECIDE : LOOK);
}
