// Tells the page, now and then, that somebody is writing a message: "parley:typing" on the document (LIVE-05).
import { field } from "./field.js";

const EVERY = 3_000;
let toldAt = -EVERY;

/** Words that a script puts there are not typed, and a command is no message. */
export function start() {
  field.addEventListener("input", (event) => {
    if (!event.isTrusted || !field.value.trim() || field.value.startsWith("/")) return;
    if (event.timeStamp - toldAt < EVERY) return;
    toldAt = event.timeStamp;
    document.dispatchEvent(new Event("parley:typing"));
  });
}
