// What the figures in the header say, in sentences.
import { fill, words } from "../ui/i18n.js";
import { openBox, place } from "../ui/popover.js";

/** Opens the explanation at a button. */
export function openUsage(button) {
  const box = openBox(button, { className: "usage", label: words.usage });
  const known = document.querySelector("#figures [data-total]").dataset;
  if (!box) return;
  box.append(heading(words.usage), ...context(known), line(fill(words.usageTotal, { total: number(known.total) })), wayToContext());
  place();
  box.focus({ preventScroll: true });
}

function context({ used, window, percent }) {
  if (!used) return [line(words.usageNone)];
  if (!window) return [line(fill(words.usageNoWindow, { used: number(used) }))];
  const meter = document.createElement("meter");
  Object.assign(meter, { max: 100, high: 80, low: 50, optimum: 0, value: Number(percent) });
  meter.ariaLabel = words.usage;
  return [meter, line(fill(words.usageContext, { used: number(used), window: number(window) }))];
}

function wayToContext() {
  const button = Object.assign(document.createElement("button"), { type: "button", className: "button small", textContent: words.contextNext });
  button.dataset.action = "context-now";
  return button;
}

const number = (text) => Number(text).toLocaleString(document.documentElement.lang);

function heading(text) {
  return Object.assign(document.createElement("h2"), { textContent: text });
}

function line(text) {
  return Object.assign(document.createElement("p"), { textContent: text });
}
