// The page's part of rendered Markdown: labels in the user's language, footnotes, buttons of code and tables, diagrams.
import { keep, kept } from "../net/storage.js";
import { confirm, copyWords } from "../ui/clipboard.js";
import { offer, on } from "../ui/commands.js";
import { make } from "../ui/dom.js";
import { fill, words } from "../ui/i18n.js";
import { late } from "../ui/late.js";
import { notice } from "../ui/notice.js";
import { keepPlace, leave } from "./scroll.js";

// Code and other scrolling boxes: line wrapping as the user chose, and labels for icon buttons.

const KEY = "parley:wrap";
const SCROLLERS = ":is(.code pre, .table-wrap, .formula, .piece, .screen)";
const root = document.documentElement;
const name = document.getElementById("w-wrap");
const wrapLines = name.textContent;

function toggle() {
  const wrapped = root.dataset.wrap !== "yes";
  showWrapped(wrapped);
  keep(KEY, wrapped ? "yes" : "");
}

/** All buttons take their label from one element, so that one change updates the state of each. */
function showWrapped(wrapped) {
  root.dataset.wrap = wrapped ? "yes" : "no";
  name.textContent = wrapped ? words.keepLines : wrapLines;
}

/** Makes boxes focusable only if they scroll. Measured when the keyboard is used. */
function skipWhatFits() {
  for (const box of document.querySelectorAll(`#messages ${SCROLLERS}`)) {
    if (!box.checkVisibility({ contentVisibilityAuto: true })) continue; // measuring would force its layout
    box.tabIndex = box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight ? 0 : -1;
  }
}

function showName({ target }) {
  const button = target.closest?.("#messages button[aria-labelledby]");
  if (button) button.title = document.getElementById(button.getAttribute("aria-labelledby")).textContent;
}

function connectCode() {
  on("wrap-code", toggle);
  offer({ id: "wrap-code", label: wrapLines, icon: "wrap-text", run: toggle });
  document.addEventListener("pointerover", showName);
  document.addEventListener("keydown", (event) => event.key === "Tab" && skipWhatFits(), true);
  showWrapped(kept(KEY) === "yes");
}

// Images from other sites: shown after a click, fetched by Parley and not by the user's browser.

async function load(button) {
  const place = button.parentElement;
  const link = place.querySelector("a");
  const focused = document.activeElement === button;
  button.disabled = true;
  const image = new Image();
  image.alt = button.textContent;
  image.src = `/image?${new URLSearchParams({ address: link.getAttribute("href"), signature: button.dataset.picture })}`;
  try {
    await image.decode();
    show(place, button, image);
    if (focused) link.focus({ preventScroll: true });
  } catch {
    button.disabled = false;
    if (focused) button.focus({ preventScroll: true });
    notice(words.pictureFailed);
  }
}

/** Marks the element as loaded, so that later updates keep the image. */
function show(place, button, image) {
  place.dataset.picture = button.dataset.picture;
  button.replaceWith(image);
}

function connectImages() {
  document.documentElement.style.setProperty("--load-picture", JSON.stringify(words.loadPicture));
  on("load-picture", load);
}

// Images in messages open in the lightbox; with a modifier key, a click opens them like any link.

function connectPictures() {
  on("show-picture", async (link, event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    (await late(() => import("../dialogs/viewers.js")))?.showPicture(link);
  });
}

const SHOWN = ["caution", "code", "diagram", "important", "note", "preview", "tip", "warning"];
const KEPT_MS = 60_000;
let origin = null; // the reference from which the user came to a footnote

const bodyOf = (element) => element.closest("[data-body]");

/** Returns the footnote of a reference, or the first reference to a footnote, in the same message. */
function partner(button, kind) {
  return [...(bodyOf(button)?.querySelectorAll(kind) ?? [])].find(
    ({ textContent }) => textContent === button.textContent,
  );
}

function go(target) {
  if (!target) return;
  leave();
  target.scrollIntoView({ block: "center" });
  target.focus({ preventScroll: true });
}

const quoted = (value) => (/[",\r\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);

function save(text, name) {
  const link = make("a", {
    href: URL.createObjectURL(new Blob([text], { type: "text/plain;charset=utf-8" })),
    download: name,
  });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), KEPT_MS);
}

function connectContent() {
  for (const name of SHOWN) {
    const text = document.getElementById(`w-${name}`).textContent;
    document.documentElement.style.setProperty(`--w-${name}`, JSON.stringify(text));
  }
  on("footnote", (button) => {
    origin = button;
    go(partner(button, ".footnote-back"));
  });
  on("footnote-back", (button) => {
    const isOrigin = origin?.textContent === button.textContent && bodyOf(origin) === bodyOf(button);
    go(isOrigin ? origin : partner(button, ".footnote-ref"));
  });
  on("download-code", (button) => {
    const block = button.closest(".code");
    save(block.querySelector("pre").textContent, `snippet.${block.dataset.file ?? "txt"}`);
  });
  on("copy-csv", async (button) => {
    const rows = [...button.parentElement.querySelectorAll("tr")];
    const text = rows.map((row) => [...row.cells].map((cell) => quoted(cell.textContent.trim())).join(",")).join("\n");
    confirm(button, await copyWords(`${text}\n`));
  });
  on("preview", async (button) => (await late(() => import("../dialogs/viewers.js")))?.openPreview(button));
}

// Diagrams: draws a finished mermaid block near the screen in a sandboxed frame, with a button for its code.

const ADDRESS = "/frames/diagram";
const SOON = 300;
const TALLEST = 2000;
const LONGEST_ERROR = 200;
const list = document.getElementById("messages");
const dark = matchMedia("(prefers-color-scheme: dark)");
const drawings = new Map(); // by block: its frame and the code that is drawn
const near = new IntersectionObserver(approached, { root: document.getElementById("log"), rootMargin: "400px 0px" });
let due = 0;

function connectDiagrams() {
  on("show-diagram", (button) => showAs(button.closest(".code"), "diagram"));
  on("show-code", (button) => showAs(button.closest(".code"), "code"));
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
  if (Number.isFinite(data.height)) return keepPlace(() => grow(block, data.height));
  const error = String(data.error).slice(0, LONGEST_ERROR);
  keepPlace(() => fail(block, data.missing ? words.diagramNotLoaded : fill(words.diagramFailed, { error })));
}

function grow(block, height) {
  const { frame } = drawings.get(block);
  frame.style.blockSize = `${Math.min(Math.max(height, 40), TALLEST)}px`;
  frame.dataset.drawn = "";
  if (!block.dataset.shows) showAs(block, "diagram");
}

function fail(block, reason) {
  const line = make("p", { className: "diagram-error", data: { own: "" }, dir: "auto", textContent: reason });
  drawings.get(block).frame.remove();
  delete block.dataset.shows;
  block.querySelector(".diagram-error")?.remove();
  block.append(line);
}

function showAs(block, what) {
  block.dataset.shows = what;
  for (const button of block.querySelectorAll(".show"))
    button.ariaPressed = String(button.dataset.action === `show-${what}`);
}

export function connect() {
  connectCode();
  connectImages();
  connectPictures();
  connectContent();
  connectDiagrams();
}
