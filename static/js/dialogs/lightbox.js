// The lightbox shows a message's images, one at a time. Arrow keys and swipes change the image. Escape and a press
// outside close it.
import { cloneTemplate } from "../ui/dom.js";
import { format, words } from "../ui/i18n.js";
import { END_KEYS, horizontalKeys, itemForKey } from "../ui/options.js";

const page = document.getElementById("main");
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
