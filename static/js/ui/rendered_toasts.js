// Toasts that the server has rendered with the page, about the form that the user has sent.
import { ACTION_SECONDS, READ_SECONDS, removeLater } from "./toast.js";

const SETTLING_MS = 300; // after the page has loaded, until screen readers can announce changes of it
const region = document.getElementById("toasts");

/**
 * Adds the rendered toasts again, because screen readers only announce later changes. Until then they are inert, so
 * that they are new to screen readers. They disappear like other toasts.
 */
export function connect() {
  for (const element of region?.children ?? []) {
    element.inert = true;
    element.style.animation = "none"; // it is already visible
    removeLater(element, element.querySelector("form") ? ACTION_SECONDS : READ_SECONDS);
    setTimeout(() => {
      element.inert = false;
      region.append(element);
    }, SETTLING_MS);
  }
}
