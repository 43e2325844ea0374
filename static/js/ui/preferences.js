// Preferences, stored with the user's account.
import { post } from "../net/http.js";
import { keep as store } from "../net/storage.js";

const root = document.documentElement;
let last = Promise.resolve("");
let waiting = {};
let unconfirmed = {};

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
  unconfirmed = choices;
  const sent = post(root.dataset.preferences, choices, failed, { keepalive: true });
  const answered = sent.then(
    () => "",
    (error) => error.message,
  );
  return answered.finally(() => (unconfirmed = {}));
}

/** Sends what waits when the page is left. The next page may be rendered before the server has a choice; it reads the theme here. */
function leave() {
  const { theme } = { ...unconfirmed, ...waiting };
  if (isWaiting()) send("");
  if (theme !== undefined) leaveTheme(theme || "system");
}

const leaveTheme = (theme) => store("parley:theme", theme, "sessionStorage");

export function connect() {
  addEventListener("pagehide", leave);
  addEventListener("pageshow", () => leaveTheme("")); // also a page that Back brought back, which shows the choice itself
}
