// Rendered Markdown: labels in the user's language, images, footnotes, and the buttons of code and tables.
import { readStored, writeStored } from "../net/storage.js";
import { copyText, showCopyResult } from "../ui/clipboard.js";
import { addCommand, onAction } from "../ui/commands.js";
import { createElement } from "../ui/dom.js";
import { words } from "../ui/i18n.js";
import { lazyImport } from "../ui/loading.js";
import { showNotice } from "../ui/notice.js";
import { stopFollowing } from "./scroll.js";

// Code and other scrolling boxes: the user's choice of line wrapping, and labels for icon buttons.

const WRAP_NAME = "parley:wrap";
const SCROLLERS = ":is(.code pre, .table-wrap, .formula, .piece, .screen)";
const root = document.documentElement;
const wrapLabel = document.getElementById("w-wrap");
const wrapText = wrapLabel.textContent;

function toggleWrapping() {
  const wrapped = root.dataset.wrap !== "yes";
  showWrapped(wrapped);
  writeStored(WRAP_NAME, wrapped ? "yes" : "");
}

/** Wraps lines or not. The label of all buttons is one element, which aria-labelledby references. */
function showWrapped(wrapped) {
  root.dataset.wrap = wrapped ? "yes" : "no";
  wrapLabel.textContent = wrapped ? words.keepLines : wrapText;
}

/** Makes boxes focusable only if they scroll. Called on Tab, because measuring takes time. */
function updateFocusable() {
  for (const box of document.querySelectorAll(`#messages ${SCROLLERS}`)) {
    // Measuring would lay out a box that is not in view.
    if (!box.checkVisibility({ contentVisibilityAuto: true })) continue;
    box.tabIndex = box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight ? 0 : -1;
  }
}

function showTitle({ target }) {
  const button = target.closest?.("#messages button[aria-labelledby]");
  if (button) button.title = document.getElementById(button.getAttribute("aria-labelledby")).textContent;
}

function connectCode() {
  onAction("wrap-code", toggleWrapping);
  addCommand({ id: "wrap-code", label: wrapText, icon: "wrap-text", run: toggleWrapping });
  document.addEventListener("pointerover", showTitle);
  document.addEventListener("keydown", (event) => event.key === "Tab" && updateFocusable(), true);
  showWrapped(readStored(WRAP_NAME) === "yes");
}

// Images from other sites are shown after a click. Parley's server fetches them, not the user's browser.

async function loadImage(button) {
  const place = button.parentElement;
  const link = place.querySelector("a");
  const focused = document.activeElement === button;
  button.disabled = true;
  const image = new Image();
  image.alt = button.textContent;
  image.src = `/image?${new URLSearchParams({ address: link.getAttribute("href"), signature: button.dataset.picture })}`;
  try {
    await image.decode();
    showImage(place, button, image);
    if (focused) link.focus({ preventScroll: true });
  } catch {
    button.disabled = false;
    if (focused) button.focus({ preventScroll: true });
    showNotice(words.pictureFailed);
  }
}

/** Shows the image, and marks the element, so that patches keep the image. */
function showImage(place, button, image) {
  place.dataset.picture = button.dataset.picture;
  button.replaceWith(image);
}

function connectImages() {
  document.documentElement.style.setProperty("--load-picture", JSON.stringify(words.loadPicture));
  onAction("load-picture", loadImage);
}

// Images in messages open in the lightbox. A click with a modifier key opens them like a link.

function connectPictures() {
  onAction("show-picture", async (link, event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    (await lazyImport(() => import("../dialogs/lightbox.js")))?.showPicture(link);
  });
}

const LABELS = ["caution", "code", "diagram", "important", "note", "preview", "tip", "warning"];
const REVOKE_AFTER_MS = 60_000;
let lastReference = null; // the reference from which the user came to a footnote

const bodyOf = (element) => element.closest("[data-body]");

/** Returns the footnote of a reference, or the first reference to a footnote, in the same message. */
function matchingFootnote(button, kind) {
  return [...(bodyOf(button)?.querySelectorAll(kind) ?? [])].find(
    ({ textContent }) => textContent === button.textContent,
  );
}

function goTo(target) {
  if (!target) return;
  stopFollowing();
  target.scrollIntoView({ block: "center" });
  target.focus({ preventScroll: true });
}

/** Returns the text of a cell, with the source of its formulas. */
function textOf(cell) {
  const copy = cell.cloneNode(true);
  for (const formula of copy.querySelectorAll("math")) formula.replaceWith(formula.getAttribute("alttext"));
  for (const lineBreak of copy.querySelectorAll("br")) lineBreak.replaceWith("\n");
  return copy.textContent.trim();
}

const csvField = (value) => (/[",\r\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);

function downloadText(text, name) {
  const link = createElement("a", {
    href: URL.createObjectURL(new Blob([text], { type: "text/plain;charset=utf-8" })),
    download: name,
  });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), REVOKE_AFTER_MS);
}

function connectContent() {
  for (const name of LABELS) {
    const text = document.getElementById(`w-${name}`).textContent;
    document.documentElement.style.setProperty(`--w-${name}`, JSON.stringify(text));
  }
  onAction("footnote", (button) => {
    lastReference = button;
    goTo(matchingFootnote(button, ".footnote-back"));
  });
  onAction("footnote-back", (button) => {
    const isOrigin = lastReference?.textContent === button.textContent && bodyOf(lastReference) === bodyOf(button);
    goTo(isOrigin ? lastReference : matchingFootnote(button, ".footnote-ref"));
  });
  onAction("download-code", (button) => {
    const block = button.closest(".code");
    downloadText(block.querySelector("pre").textContent, `snippet.${block.dataset.file ?? "txt"}`);
  });
  onAction("copy-csv", async (button) => {
    const rows = [...button.parentElement.querySelectorAll("tr")];
    const text = rows.map((row) => [...row.cells].map((cell) => csvField(textOf(cell))).join(",")).join("\n");
    showCopyResult(button, await copyText(`${text}\n`));
  });
  onAction("preview", async (button) => (await lazyImport(() => import("../dialogs/preview.js")))?.openPreview(button));
}

// Content that few sessions have: sources and diagrams. Its modules are loaded when the list first contains it.

const DELAY_MS = 150;
const list = document.getElementById("messages");
const loadDiagrams = () => lazyImport(() => import("./diagrams.js"));
const lazyContent = new Map([
  [".sources", () => lazyImport(() => import("./citations.js"))],
  ["[data-action=show-diagram]", loadDiagrams],
]);
let loadTimer = 0;

function loadLazyContent() {
  loadTimer = 0;
  for (const [kind, load] of lazyContent) {
    if (!list.querySelector(kind)) continue;
    lazyContent.delete(kind);
    load().then((module) => module ?? lazyContent.set(kind, load)); // if that failed, tries again after the next change
  }
}

function connectLazyContent() {
  loadLazyContent();
  const observer = new MutationObserver(() => {
    if (lazyContent.size) loadTimer ||= setTimeout(loadLazyContent, DELAY_MS);
  });
  observer.observe(list, { childList: true, subtree: true });
  const show = async (button, what) => (await loadDiagrams())?.showAs(button.closest(".code"), what);
  onAction("show-diagram", (button) => show(button, "diagram"));
  onAction("show-code", (button) => show(button, "code"));
}

export function connect() {
  connectCode();
  connectImages();
  connectPictures();
  connectContent();
  connectLazyContent();
}
