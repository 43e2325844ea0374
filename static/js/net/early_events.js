// Says that the page heeds what is done, to early.js, which kept what was done before.

/** Told once htmx is listening as well: it begins a moment after it was loaded. */
export function ready() {
  setTimeout(() => document.dispatchEvent(new Event("parley:ready")));
}
