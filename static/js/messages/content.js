// The page's part of rendered Markdown: labels in the user's language, footnotes, and buttons of code and tables.
import { keep, kept } from "../net/storage.js";
import { confirm, copyWords } from "../ui/clipboard.js";
import { offer, on } from "../ui/commands.js";
import { make } from "../ui/dom.js";
import { words } from "../ui/i18n.js";
import { late } from "../ui/late.js";
import { notice } from "../ui/notice.js";
import { leave } from "./scroll.js";

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
    (await late(() => import("../dialogs/lightbox.js")))?.show(link);
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
  on("preview", async (button) => (await late(() => import("../dialogs/preview.js")))?.open(button));
}

export function connect() {
  connectCode();
  connectImages();
  connectPictures();
  connectContent();
}
