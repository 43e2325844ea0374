// Diagrams: a finished mermaid block is drawn in a sandboxed frame when it comes near the screen. This module is loaded
// with the first diagram.
import { createElement } from "../ui/dom.js";
import { format, words } from "../ui/i18n.js";
import { keepScrollPosition } from "./scroll.js";

const ADDRESS = "/frames/diagram";
const DELAY_MS = 300;
const MAX_HEIGHT = 2000;
const MAX_ERROR_LENGTH = 200;
const root = document.documentElement;
const list = document.getElementById("messages");
const prefersDark = matchMedia("(prefers-color-scheme: dark)");
const drawings = new Map(); // by block: its frame and the code that is drawn
const nearScreen = new IntersectionObserver(handleIntersection, {
  root: document.getElementById("log"),
  rootMargin: "400px 0px",
});
let findTimer = 0;

/** Finds new diagrams, and diagrams whose code has changed. */
function findDiagrams() {
  findTimer = 0;
  for (const [block, { code }] of drawings) if (!block.isConnected || codeOf(block) !== code) removeDrawing(block);
  for (const button of list.querySelectorAll("[data-action=show-diagram]")) {
    const block = button.closest(".code");
    if (!drawings.has(block)) nearScreen.observe(block);
  }
}

const codeOf = (block) =>
  block.querySelector("[data-action=show-diagram]") ? block.querySelector("pre").textContent : null;

function handleIntersection(entries) {
  for (const { isIntersecting, target } of entries) {
    if (!isIntersecting) continue;
    nearScreen.unobserve(target);
    if (!drawings.has(target) && target.isConnected) drawDiagram(target);
  }
}

function drawDiagram(block) {
  const title = document.getElementById("w-diagram").textContent;
  const frame = createElement("iframe", {
    className: "diagram",
    data: { own: "" },
    title,
    sandbox: "allow-scripts",
    referrerPolicy: "no-referrer",
    src: ADDRESS,
  });
  drawings.set(block, { frame, code: codeOf(block) });
  frame.addEventListener("load", () => sendCode(drawings.get(block)));
  block.append(frame);
}

function removeDrawing(block) {
  drawings.get(block).frame.remove();
  drawings.delete(block);
  block.querySelector(".diagram-error")?.remove();
  delete block.dataset.shows;
  // Patches keep this attribute, but the code may have other buttons now.
  for (const button of block.querySelectorAll("[aria-pressed]")) button.removeAttribute("aria-pressed");
}

const sendCode = (drawing) => drawing?.frame.contentWindow?.postMessage({ code: drawing.code, dark: isDark() }, "*");

function redrawAll() {
  for (const drawing of drawings.values()) sendCode(drawing);
}

function isDark() {
  const scheme = getComputedStyle(root).colorScheme;
  return scheme === "dark" || (scheme.includes("dark") && prefersDark.matches);
}

/** Handles a frame's report. Frames are not trusted, so heights and texts are limited. */
function handleReport({ source, data }) {
  const [block] = [...drawings].find(([, { frame }]) => frame.contentWindow === source) ?? [];
  if (!block || typeof data !== "object" || data === null) return;
  if (Number.isFinite(data.height)) return keepScrollPosition(() => resizeFrame(block, data.height));
  const error = String(data.error).slice(0, MAX_ERROR_LENGTH);
  keepScrollPosition(() =>
    showError(block, data.missing ? words.diagramNotLoaded : format(words.diagramFailed, { error })),
  );
}

function resizeFrame(block, height) {
  const { frame } = drawings.get(block);
  frame.style.blockSize = `${Math.min(Math.max(height, 40), MAX_HEIGHT)}px`;
  frame.dataset.drawn = "";
  if (!block.dataset.shows) showAs(block, "diagram");
}

function showError(block, reason) {
  const line = createElement("p", { className: "diagram-error", data: { own: "" }, dir: "auto", textContent: reason });
  drawings.get(block).frame.remove();
  delete block.dataset.shows;
  block.querySelector(".diagram-error")?.remove();
  block.append(line);
}

/** Shows a block as its diagram or its code. */
export function showAs(block, what) {
  block.dataset.shows = what;
  for (const button of block.querySelectorAll(".show"))
    button.ariaPressed = String(button.dataset.action === `show-${what}`);
}

export function connect() {
  findDiagrams();
  new MutationObserver(() => (findTimer ||= setTimeout(findDiagrams, DELAY_MS))).observe(list, {
    childList: true,
    subtree: true,
    characterData: true,
  });
  new MutationObserver(redrawAll).observe(root, { attributeFilter: ["data-theme"] });
  prefersDark.addEventListener("change", redrawAll);
  addEventListener("message", handleReport);
}
