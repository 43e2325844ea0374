// Code, and what else scrolls in messages: lines wrapped as the reader chose, names for buttons without words.
import { on } from "./actions.js";
import { offer } from "./deeds.js";
import { keep, kept } from "./store.js";
import { words } from "./words.js";

const KEY = "parley:wrap";
const SCROLLERS = ":is(.code pre, .table-wrap, .formula, .piece, .screen)";
const root = document.documentElement;
const name = document.getElementById("w-wrap");
const wrapLines = name.textContent;

on("wrap-code", toggle);
offer({ id: "wrap-code", label: wrapLines, icon: "wrap-text", run: toggle });
document.addEventListener("pointerover", showName);
document.addEventListener("keydown", (event) => event.key === "Tab" && skipWhatFits(), true);
show(kept(KEY) === "yes");

function toggle() {
  const wrapped = root.dataset.wrap !== "yes";
  show(wrapped);
  keep(KEY, wrapped ? "yes" : "");
}

/** All buttons take their name from one element, so that one change tells the state of each. */
function show(wrapped) {
  root.dataset.wrap = wrapped ? "yes" : "no";
  name.textContent = wrapped ? words.keepLines : wrapLines;
}

/** Who goes through the page by keyboard stops only at what there is to scroll. Looked at when it matters. */
function skipWhatFits() {
  for (const box of document.querySelectorAll(`#messages ${SCROLLERS}`)) {
    if (!box.checkVisibility({ contentVisibilityAuto: true })) continue; // to measure it would draw it
    box.tabIndex = box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight ? 0 : -1;
  }
}

function showName({ target }) {
  const button = target.closest?.("#messages button[aria-labelledby]");
  if (button) button.title = document.getElementById(button.getAttribute("aria-labelledby")).textContent;
}
