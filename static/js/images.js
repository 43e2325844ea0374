// Pictures from elsewhere: shown when the reader asks for one, fetched by Parley and not by the reader's browser.
import { on } from "./actions.js";
import { notice } from "./notice.js";
import { words } from "./words.js";

document.documentElement.style.setProperty("--load-picture", JSON.stringify(words.loadPicture));
on("load-picture", load);

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

/** The place says what it shows, so that nothing that comes later takes the picture away again. */
function show(place, button, image) {
  place.dataset.picture = button.dataset.picture;
  button.replaceWith(image);
}
