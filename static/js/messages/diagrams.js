// Diagrams: draws a finished mermaid block near the screen in a sandboxed frame, with a button for its code.
import { on } from "../ui/commands.js";
import { make } from "../ui/dom.js";
import { fill, words } from "../ui/i18n.js";

const ADDRESS = "/frames/diagram";
const SOON = 300;
const TALLEST = 2000;
const LONGEST_ERROR = 200;
const root = document.documentElement;
const list = document.getElementById("messages");
const dark = matchMedia("(prefers-color-scheme: dark)");
const drawings = new Map(); // by block: its frame and the code that is drawn
const near = new IntersectionObserver(approached, { root: document.getElementById("log"), rootMargin: "400px 0px" });
let due = 0;

export function connect() {
  on("show-diagram", (button) => show(button.closest(".code"), "diagram"));
  on("show-code", (button) => show(button.closest(".code"), "code"));
  look();
  new MutationObserver(() => (due ||= setTimeout(look, SOON))).observe(list, { childList: true, subtree: true });
  new MutationObserver(drawAgain).observe(root, { attributeFilter: ["data-theme"] });
  dark.addEventListener("change", drawAgain);
  addEventListener("message", heard);
}

/** Finds new diagrams, and those whose code has changed. */
function look() {
  due = 0;
  for (const [block, { code }] of drawings) if (!block.isConnected || codeOf(block) !== code) forget(block);
  for (const button of list.querySelectorAll("[data-action=show-diagram]")) {
    const block = button.closest(".code");
    if (!drawings.has(block)) near.observe(block);
  }
}

const codeOf = (block) =>
  block.querySelector("[data-action=show-diagram]") ? block.querySelector("pre").textContent : null;

function approached(entries) {
  for (const { isIntersecting, target } of entries) {
    if (!isIntersecting) continue;
    near.unobserve(target);
    if (!drawings.has(target) && target.isConnected) open(target);
  }
}

function open(block) {
  const title = document.getElementById("w-diagram").textContent;
  const frame = make("iframe", {
    className: "diagram",
    data: { own: "" },
    title,
    sandbox: "allow-scripts",
    referrerPolicy: "no-referrer",
    src: ADDRESS,
  });
  drawings.set(block, { frame, code: codeOf(block) });
  frame.addEventListener("load", () => send(drawings.get(block)));
  block.append(frame);
}

function forget(block) {
  drawings.get(block).frame.remove();
  drawings.delete(block);
  block.querySelector(".diagram-error")?.remove();
  delete block.dataset.shows;
}

const send = (drawing) => drawing?.frame.contentWindow?.postMessage({ code: drawing.code, dark: isDark() }, "*");

function drawAgain() {
  for (const drawing of drawings.values()) send(drawing);
}

function isDark() {
  const scheme = getComputedStyle(root).colorScheme;
  return scheme === "dark" || (scheme.includes("dark") && dark.matches);
}

/** Checks a frame's report, which is untrusted: accepts a number within limits, or some text. */
function heard({ source, data }) {
  const [block] = [...drawings].find(([, { frame }]) => frame.contentWindow === source) ?? [];
  if (!block || typeof data !== "object" || data === null) return;
  if (Number.isFinite(data.height)) grow(block, data.height);
  else
    fail(
      block,
      data.missing
        ? words.diagramNotLoaded
        : fill(words.diagramFailed, { error: String(data.error).slice(0, LONGEST_ERROR) }),
    );
}

function grow(block, height) {
  const { frame } = drawings.get(block);
  frame.style.blockSize = `${Math.min(Math.max(height, 40), TALLEST)}px`;
  frame.dataset.drawn = "";
  if (!block.dataset.shows) show(block, "diagram");
}

function fail(block, reason) {
  const line = make("p", { className: "diagram-error", data: { own: "" }, dir: "auto", textContent: reason });
  drawings.get(block).frame.remove();
  delete block.dataset.shows;
  block.querySelector(".diagram-error")?.remove();
  block.append(line);
}

function show(block, what) {
  block.dataset.shows = what;
  for (const button of block.querySelectorAll(".show"))
    button.ariaPressed = String(button.dataset.action === `show-${what}`);
}
