// Preferences, stored with the user's account.
import { post } from "../net/http.js";

const root = document.documentElement;
let last = Promise.resolve("");
let waiting = {};

/**
 * Stores preferences ({theme: "dark"}), even if the page is left at once; resolves to "" or an error text. One request at a
 * time, so that the last choice wins.
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
