// What the figures in the header say, in sentences.
import { make } from "../ui/dom.js";
import { fill, words } from "../ui/i18n.js";
import { openBox, place } from "../ui/popover.js";

/** Opens the explanation at a button. */
export function openUsage(button) {
  const box = openBox(button, { className: "usage", label: words.usage });
  const known = document.querySelector("#figures [data-total]").dataset;
  if (!box) return;
  box.append(make("h2", { textContent: words.usage }), ...context(known), line(fill(words.usageTotal, { total: number(known.total) })), wayToContext());
  place();
  box.focus({ preventScroll: true });
}

function context({ used, window, percent }) {
  if (!used) return [line(words.usageNone)];
  if (!window) return [line(fill(words.usageNoWindow, { used: number(used) }))];
  const meter = make("meter", { max: 100, high: 80, low: 50, optimum: 0, value: Number(percent), ariaLabel: words.usage });
  return [meter, line(fill(words.usageContext, { used: number(used), window: number(window) }))];
}

function wayToContext() {
  const properties = { type: "button", className: "button small", data: { action: "context-now" } };
  return make("button", properties, words.contextNext);
}

const number = (text) => Number(text).toLocaleString(document.documentElement.lang);

const line = (text) => make("p", { textContent: text });
