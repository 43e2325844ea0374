// What shows content of messages in large: images in the lightbox, HTML and SVG in the preview.
import { isBehind, PHONE } from "../ui/commands.js";
import { copyOf, make } from "../ui/dom.js";
import { fill, words } from "../ui/i18n.js";
import { ENDS, reached, sideways } from "../ui/options.js";

// The lightbox: a message's images, one at a time. Arrows and swipes move on, Escape and a press outside close it.

const SWIPE = 50;
let pictures = []; // the links in the message, in order
let at = 0;
let dialog = null;

/** Shows the image of a link; the message's other images can follow. */
export function showPicture(link) {
  pictures = [...link.closest(".pictures").querySelectorAll("a")];
  dialog ??= buildLightbox();
  dialog.classList.toggle("alone", pictures.length < 2);
  turnTo(pictures.indexOf(link));
  dialog.showModal();
}

function buildLightbox() {
  const made = copyOf("lightbox-template");
  document.body.append(made);
  made.addEventListener("keydown", onKey);
  made.addEventListener("click", ({ target }) => {
    const by = target.closest(".lightbox-go")?.dataset.by;
    if (by) turnTo(at + Number(by));
    else if (target.closest(".lightbox-close") || target.matches(".lightbox-stage")) made.close();
  });
  made.addEventListener("close", () => pictures[at]?.focus({ preventScroll: true }));
  swipes(made.querySelector(".lightbox-stage"));
  return made;
}

function onKey(event) {
  const picture = reached(event, { ...sideways(dialog), ...ENDS }, pictures, pictures[at]);
  if (!picture) return;
  event.preventDefault();
  turnTo(pictures.indexOf(picture));
}

function turnTo(index) {
  at = (index + pictures.length) % pictures.length;
  const thumb = pictures[at].querySelector("img");
  const image = dialog.querySelector(".lightbox-stage img");
  image.alt = thumb.alt;
  image.src = thumb.src; // until the large one is loaded
  dialog.querySelector(".lightbox-name").textContent = thumb.alt;
  dialog.querySelector(".lightbox-whole").href = pictures[at].href;
  dialog.querySelector(".lightbox-count").textContent = fill(words.found, { index: at + 1, count: pictures.length });
  enlarge(image, pictures[at]);
}

async function enlarge(image, link) {
  const large = new Image();
  large.src = link.href;
  image.dataset.loading = "";
  await large.decode().catch(() => {}); // the thumbnail stays
  if (pictures[at] !== link) return;
  delete image.dataset.loading;
  if (large.naturalWidth) image.src = large.src;
}

function swipes(stage) {
  let from = null;
  stage.addEventListener(
    "touchstart",
    ({ touches }) => {
      from = touches.length === 1 ? touches[0].clientX : null;
    },
    { passive: true },
  );
  stage.addEventListener("touchend", ({ changedTouches }) => {
    const by = from === null ? 0 : changedTouches[0].clientX - from;
    if (Math.abs(by) > SWIPE && pictures.length > 1)
      turnTo(at - Math.sign(by) * (getComputedStyle(stage).direction === "rtl" ? -1 : 1));
  });
}

// The preview of HTML or SVG from an answer, in a frame without access to the page and the network.

const ADDRESS = "/frames/preview";
const page = document.getElementById("main");
const panel = document.getElementById("panel");
let side = null;
let opener = null;
let wayBack = null;

/** Shows the preview of a code block, or of the element that the button names. */
export function openPreview(button) {
  side ??= buildPreview();
  opener = button;
  const block = document.getElementById(button.dataset.source) ?? button.closest(".code");
  const code = block.querySelector("pre").textContent;
  const frame = make("iframe", {
    title: side.querySelector("h2").textContent,
    sandbox: "allow-scripts",
    referrerPolicy: "no-referrer",
    src: ADDRESS,
  });
  frame.addEventListener("load", () => frame.contentWindow.postMessage(code, "*"), { once: true });
  side.querySelector("iframe")?.remove();
  side.append(frame);
  side.hidden = false;
  isolate();
  side.focus({ preventScroll: true });
}

function buildPreview() {
  const made = copyOf("preview-template");
  panel.after(made);
  made.querySelector("button").addEventListener("click", closePreview);
  made.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || event.defaultPrevented || isBehind()) return;
    event.preventDefault();
    closePreview();
  });
  addEventListener("message", ({ source, data }) => {
    if (data === "close" && source && source === made.querySelector("iframe")?.contentWindow) closePreview();
  });
  PHONE.addEventListener("change", isolate);
  return made;
}

function closePreview() {
  if (side.hidden) return;
  const lost = document.activeElement === document.body || side.contains(document.activeElement);
  side.hidden = true;
  side.querySelector("iframe").remove(); // ends its scripts
  isolate();
  if (lost) (opener.isConnected ? opener : page).focus({ preventScroll: true });
}

/** Covers the panel, and on phones the page, where the Back button closes it. */
function isolate() {
  panel.inert = !side.hidden;
  page.inert = PHONE.matches && (!side.hidden || !panel.hidden);
  wayBack?.destroy();
  wayBack = null;
  if (side.hidden || !PHONE.matches || !globalThis.CloseWatcher) return;
  wayBack = new CloseWatcher();
  wayBack.onclose = closePreview;
}
