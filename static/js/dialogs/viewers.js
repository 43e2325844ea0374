// Large views of content of messages: the lightbox for images, and the preview for HTML and SVG.
import { isDialogOpen, PHONE } from "../ui/commands.js";
import { cloneTemplate, createElement } from "../ui/dom.js";
import { format, words } from "../ui/i18n.js";
import { END_KEYS, horizontalKeys, itemForKey } from "../ui/options.js";

// The lightbox shows a message's images, one at a time. Arrow keys and swipes change the image. Escape and a press
// outside close it.

const SWIPE_PX = 50;
let pictures = []; // the links in the message, in order
let shownIndex = 0;
let lightbox = null;

/** Shows the image of a link, and with it the message's other images, one after the other. */
export function showPicture(link) {
  pictures = [...link.closest(".pictures").querySelectorAll("a")];
  lightbox ??= buildLightbox();
  lightbox.classList.toggle("alone", pictures.length < 2);
  showAt(pictures.indexOf(link));
  lightbox.showModal();
}

function buildLightbox() {
  const created = cloneTemplate("lightbox-template");
  document.body.append(created);
  created.addEventListener("keydown", handleKey);
  created.addEventListener("click", ({ target }) => {
    const by = target.closest(".lightbox-go")?.dataset.by;
    if (by) showAt(shownIndex + Number(by));
    else if (target.closest(".lightbox-close") || target.matches(".lightbox-stage")) created.close();
  });
  created.addEventListener("close", focusPicture);
  addSwipes(created.querySelector(".lightbox-stage"));
  return created;
}

/** Moves the focus to the link of the image, or to the page if its message has changed in the meantime. */
function focusPicture() {
  const link = pictures[shownIndex];
  (link.isConnected ? link : page).focus({ preventScroll: true });
}

function handleKey(event) {
  const picture = itemForKey(event, { ...horizontalKeys(lightbox), ...END_KEYS }, pictures, pictures[shownIndex]);
  if (!picture) return;
  event.preventDefault();
  showAt(pictures.indexOf(picture));
}

function showAt(index) {
  shownIndex = (index + pictures.length) % pictures.length;
  const thumb = pictures[shownIndex].querySelector("img");
  const image = lightbox.querySelector(".lightbox-stage img");
  image.alt = thumb.alt;
  image.src = thumb.src; // until the large one is loaded
  lightbox.querySelector(".lightbox-name").textContent = thumb.alt;
  lightbox.querySelector(".lightbox-whole").href = pictures[shownIndex].href;
  lightbox.querySelector(".lightbox-count").textContent = format(words.found, {
    index: shownIndex + 1,
    count: pictures.length,
  });
  loadLarge(image, pictures[shownIndex]);
}

async function loadLarge(image, link) {
  const large = new Image();
  large.src = link.href;
  image.dataset.loading = "";
  await large.decode().catch(() => {}); // on an error the thumbnail stays
  if (pictures[shownIndex] !== link) return;
  delete image.dataset.loading;
  if (large.naturalWidth) image.src = large.src;
}

function addSwipes(stage) {
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
    if (Math.abs(by) > SWIPE_PX && pictures.length > 1)
      showAt(shownIndex - Math.sign(by) * (getComputedStyle(stage).direction === "rtl" ? -1 : 1));
  });
}

// The preview of HTML or SVG from an answer, in a frame without access to the page and the network.

const ADDRESS = "/frames/preview";
const page = document.getElementById("main");
const panel = document.getElementById("panel");
let preview = null;
let opener = null;
let backWatcher = null;

/** Shows the preview of a code block, or of the element that the button names. */
export function openPreview(button) {
  preview ??= buildPreview();
  opener = button;
  const block = document.getElementById(button.dataset.source) ?? button.closest(".code");
  const code = block.querySelector("pre").textContent;
  const frame = createElement("iframe", {
    title: preview.querySelector("h2").textContent,
    sandbox: "allow-scripts allow-forms",
    referrerPolicy: "no-referrer",
    src: ADDRESS,
  });
  frame.addEventListener("load", () => frame.contentWindow.postMessage(code, "*"), { once: true });
  preview.querySelector("iframe")?.remove();
  preview.append(frame);
  preview.hidden = false;
  updateInert();
  preview.focus({ preventScroll: true });
}

function buildPreview() {
  const created = cloneTemplate("preview-template");
  panel.after(created);
  created.querySelector("button").addEventListener("click", closePreview);
  created.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || event.defaultPrevented || isDialogOpen()) return;
    event.preventDefault();
    closePreview();
  });
  addEventListener("message", ({ source, data }) => {
    if (data === "close" && source && source === created.querySelector("iframe")?.contentWindow) closePreview();
  });
  PHONE.addEventListener("change", updateInert);
  return created;
}

function closePreview() {
  if (preview.hidden) return;
  const isFocusLost = document.activeElement === document.body || preview.contains(document.activeElement);
  preview.hidden = true;
  preview.querySelector("iframe").remove(); // ends its scripts
  updateInert();
  if (isFocusLost) (opener.isConnected ? opener : page).focus({ preventScroll: true });
}

/** Makes the panel inert while the preview covers it, and on phones also the page. There, Back closes the preview. */
function updateInert() {
  panel.inert = !preview.hidden;
  page.inert = PHONE.matches && (!preview.hidden || !panel.hidden);
  backWatcher?.destroy();
  backWatcher = null;
  if (preview.hidden || !PHONE.matches || !globalThis.CloseWatcher) return;
  backWatcher = new CloseWatcher();
  backWatcher.onclose = closePreview;
}
