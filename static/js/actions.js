// What people do with buttons: one listener for the whole page, by the button's data-action.
const handlers = new Map();

/** Lets `handler(button, event)` do what buttons with this data-action ask for. */
export function on(action, handler) {
  if (handlers.has(action)) throw new Error(`Two handlers for ${action}`);
  handlers.set(action, handler);
}

document.addEventListener("click", (event) => {
  const button = event.target.closest?.("[data-action]");
  if (button && !button.disabled) handlers.get(button.dataset.action)?.(button, event);
});
