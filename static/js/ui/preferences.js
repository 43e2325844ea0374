// Preferences, which are stored with the user's account.
import { post } from "../net/http.js";
import { writeStored as store } from "../net/storage.js";

const root = document.documentElement;
let lastRequest = Promise.resolve("");
let waitingChoices = {};
let unconfirmedChoices = {};

/**
 * Stores preferences such as {theme: "dark"}, even if the user leaves the page immediately. Resolves to "" or to an
 * error text. Requests are sent one after the other, so that the server stores the last choice.
 */
export function savePreferences(choices, failed) {
  Object.assign(waitingChoices, choices);
  lastRequest = lastRequest.then((problem) => (isWaiting() ? sendWaiting(failed) : problem));
  return lastRequest;
}

const isWaiting = () => Object.keys(waitingChoices).length > 0;

function sendWaiting(failed) {
  const choices = waitingChoices;
  waitingChoices = {};
  unconfirmedChoices = choices;
  const sent = post(root.dataset.preferences, choices, failed, { keepalive: true });
  const answered = sent.then(
    () => "",
    (error) => error.message,
  );
  return answered.finally(() => (unconfirmedChoices = {}));
}

/** Sends waiting choices when the user leaves the page, and stores the theme for the next page. */
function sendBeforeLeaving() {
  const { theme } = { ...unconfirmedChoices, ...waitingChoices };
  if (isWaiting()) sendWaiting("");
  if (theme !== undefined) storeThemeForNextPage(theme || "system");
}

const storeThemeForNextPage = (theme) => store("parley:theme", theme, "sessionStorage");

export function connect() {
  addEventListener("pagehide", sendBeforeLeaving);
  // A page that Back has restored already shows the choice.
  addEventListener("pageshow", () => storeThemeForNextPage(""));
}
