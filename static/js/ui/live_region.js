// Decides where a live region is and when it is written, so that screen readers announce what is added to it.

// A region that has just been moved is new to screen readers, which announce only what is added to it afterwards.
const SETTLING_MS = 100;

/**
 * Moves a live region into the open modal dialog, because that makes the rest of the page inert, or else into the body.
 * Calls `write`, which adds to the region, when screen readers know where it is.
 */
export function writeLive(region, write) {
  move(region);
  setTimeout(write, SETTLING_MS);
}

function move(region) {
  const place = [...document.querySelectorAll("body, dialog:modal")].at(-1);
  if (region.parentElement === place) return;
  place.append(region);
  place.addEventListener("close", () => move(region), { once: true });
}
