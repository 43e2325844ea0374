// Short words on what was just done, with a way to take it back; they wait while somebody looks at them.
import { copyOf, make } from "./dom.js";

const LOOK = 5;
const DECIDE = 10;
const MOST = 4;
const region = document.getElementById("toasts");
let before = null;

/** Shows `text` for some seconds, with one thing that can be done about it. Returns a function that takes it away. */
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

/** What is said again is not said twice. */
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

/** Counts down, but not under the pointer, with the focus in it, or while the page is not seen. */
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
  if (hadFocus) (region.querySelector("button") ?? before)?.focus?.();
}

/** A modal dialog makes the rest of the page inert: while one is open its toasts are inside of it. */
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
        if (!region.contains(document.activeElement)) before = document.activeElement;
        region.lastElementChild.querySelector("button").focus();
      } else if (event.key === "Escape" && region.contains(event.target)) {
        event.stopPropagation();
        event.preventDefault();
        leave(event.target.closest(".toast"));
      }
    },
    true,
  );
  // What the server said with the page goes as the others go.
  for (const element of region?.children ?? []) watch(element, LOOK);
}
