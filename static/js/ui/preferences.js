// What somebody chose, told to the server: it is theirs on every device.
import { post } from "../net/http.js";

const root = document.documentElement;
let last = Promise.resolve("");
let waiting = {};

/**
 * Keeps choices ({theme: "dark"}), also where the page is left at once; resolves to "", or why not. One request at a
 * time, so that the last choice stays.
 */
export function keep(choices, failed) {
  Object.assign(waiting, choices);
  last = last.then((problem) => (isWaiting() ? send(failed) : problem));
  return last;
}

const isWaiting = () => Object.keys(waiting).length > 0;

function send(failed) {
  const choices = waiting;
  waiting = {};
  const sent = post(root.dataset.preferences, choices, failed, { keepalive: true });
  return sent.then(
    () => "",
    (error) => error.message,
  );
}

export function connect() {
  addEventListener("pagehide", () => isWaiting() && send(""));
}
