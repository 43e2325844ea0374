// One line of a list of suggestions.
import { icon } from "./icons.js";

/** Draws an item of a source (completion.js); `number` is its place. */
export function drawOption(item, number) {
  const option = document.createElement("li");
  option.id = `completion-${number}`;
  option.role = "option";
  option.ariaSelected = "false";
  option.append(item.face ?? icon(item.icon ?? ""), worded("option-label", item.label), worded("option-detail", item.detail));
  return option;
}

function worded(name, text = "") {
  const span = document.createElement("span");
  span.className = name;
  span.dir = "auto";
  span.textContent = text;
  return span;
}
