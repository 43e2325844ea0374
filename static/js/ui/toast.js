// Toasts: short messages about the last action, often with Undo. They disappear after some seconds.
import { TOUCH } from "./commands.js";
import { cloneTemplate, createElement } from "./dom.js";
import { writeLive } from "./live_region.js";

export const READ_SECONDS = 5;
export const ACTION_SECONDS = 10;
const MAX_TOASTS = 4;
const region = document.getElementById("toasts");
let previousFocus = null; // the element that had the focus before a toast got it

/** Shows `text` for some seconds, with an optional action. Returns a function that removes it. */
export function showToast(text, { action = null, seconds = action ? ACTION_SECONDS : READ_SECONDS } = {}) {
  const element = cloneTemplate("toast");
  element.querySelector(".toast-text").textContent = text;
  if (action) addAction(element, action);
  const close = removeLater(element, seconds);
  writeLive(region, () => appendToast(element));
  return close;
}

/** Shows a toast, unless it was closed before. Removes a toast with the same text. */
function appendToast(element) {
  if (listeners.get(element).signal.aborted) return;
  const isSame = (each) => !each.querySelector(".toast-action") && each.textContent === element.textContent;
  const same = [...region.children].find(isSame);
  if (same) removeToast(same);
  region.append(element);
  while (region.children.length > MAX_TOASTS) region.firstElementChild.remove();
}

function addAction(element, { label, run }) {
  const button = createElement("button", { type: "button", className: "toast-action", textContent: label });
  button.addEventListener("click", () => {
    removeToast(element);
    run();
  });
  element.querySelector(".toast-text").after(button);
}

/** Removes a toast after some seconds, not counted while the user hovers over it, has the focus in it or is away. */
export function removeLater(element, seconds) {
  let timer = 0;
  const start = () => {
    clearTimeout(timer);
    if (!element.matches(":hover, :focus-within") && !document.hidden)
      timer = setTimeout(() => removeToast(element), seconds * 1000);
  };
  const pause = () => clearTimeout(timer);
  for (const name of ["pointerenter", "focusin"]) element.addEventListener(name, pause);
  for (const name of ["pointerleave", "focusout"]) element.addEventListener(name, () => requestAnimationFrame(start));
  element.querySelector(".toast-close").addEventListener("click", () => removeToast(element));
  document.addEventListener("visibilitychange", () => (document.hidden ? pause() : start()), {
    signal: createSignal(element),
  });
  start();
  return () => removeToast(element);
}

const listeners = new WeakMap();

function createSignal(element) {
  const controller = new AbortController();
  listeners.set(element, controller);
  return controller.signal;
}

function removeToast(element) {
  listeners.get(element)?.abort();
  const hadFocus = element.contains(document.activeElement);
  element.remove();
  if (hadFocus) (region.querySelector("button") ?? focusTarget())?.focus({ preventScroll: true });
}

/**
 * Returns the element that had the focus before the toast, else the composer's field (not on phones), else the page.
 */
function focusTarget() {
  const candidates = [
    previousFocus,
    TOUCH.matches ? null : document.getElementById("text"),
    document.getElementById("main"),
  ];
  return candidates.find((element) => element?.isConnected && element.checkVisibility());
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
        removeToast(event.target.closest(".toast"));
      }
    },
    true,
  );
  region?.addEventListener("focusin", ({ relatedTarget }) => {
    if (!region.contains(relatedTarget)) previousFocus = relatedTarget;
  });
}
