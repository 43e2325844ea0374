// Lists of sessions keep themselves up to date while somebody looks at them.
import htmx from "../vendor/htmx/htmx.esm.min.js";
import { localise } from "./time.js";

const EVERY = 15_000;

/** Asks for the list anew; see hx-get on the element. */
export function refresh(list) {
  if (!document.hidden) htmx.trigger(list, "refresh");
}

export function keepFresh(list) {
  localise(list);
  setInterval(() => refresh(list), EVERY);
  document.addEventListener("visibilitychange", () => refresh(list));
  document.addEventListener("htmx:after:swap", () => localise(document.body));
}
