// The notifications part of the settings page: the user's switch, and push messages to this browser.
import { parseHtml } from "../ui/dom.js";
import { savePreferences } from "../ui/preferences.js";
import * as push from "../ui/push.js";
import * as subscribing from "../ui/push_subscription.js";
import { localizeTimes } from "../ui/time.js";
import { showToast } from "../ui/toast.js";

const byId = (id) => document.getElementById(id);
const pushPart = byId("push"); // null if the server cannot send push messages
const browserList = byId("browsers");
const notifyBox = document.querySelector("#notify [name=notify]");

// iPads report that they are Macs, but Macs have no touch screens.
const isApple =
  /iPhone|iPad/.test(navigator.userAgent) || (/Mac/.test(navigator.userAgent) && navigator.maxTouchPoints > 1);
let hasFailed = false;

async function pushState() {
  if (!push.isSupported())
    return isApple && !navigator.standalone ? "home-screen" : isSecureContext ? "unsupported" : "insecure";
  if (Notification.permission !== "granted") return "off";
  if (await push.subscription()) return "on";
  return hasFailed ? "failed" : "off";
}

async function update() {
  if (!pushPart) return;
  const now = await pushState();
  for (const text of pushPart.querySelectorAll("[data-push-state]")) text.hidden = text.dataset.pushState !== now;
  pushPart.querySelector("[data-push=test]").hidden = now !== "on" || !notifyBox.checked;
  pushPart.querySelector("[data-push=on]").hidden = !["off", "failed"].includes(now) || !notifyBox.checked;
  pushPart.hidden = !notifyBox.checked && now !== "home-screen";
}

/** Asks the browser for permission and shows why it was not given. Resolves to whether notifications may be shown. */
async function requestPermission() {
  const isGranted = (await globalThis.Notification?.requestPermission()) === "granted";
  const present = isGranted ? "granted" : globalThis.Notification?.permission;
  byId("notify-refused").hidden = present !== "denied";
  byId("notify-dismissed").hidden = present !== "default"; // the user has closed the question, and can be asked again
  return isGranted;
}

/** Turns push messages on or off in this browser, if it supports them. */
async function setPush(isOn) {
  if (!pushPart || !push.isSupported()) return update();
  hasFailed = false;
  try {
    const { browsers } = await (isOn
      ? subscribing.turnOn(pushPart.dataset.key, pushPart.dataset.failed)
      : subscribing.turnOff(pushPart.dataset.failed));
    browserList.replaceChildren(...parseHtml(browsers).childNodes);
    localizeTimes(browserList);
  } catch (error) {
    hasFailed = isOn;
    if (!(error instanceof DOMException)) showToast(error.message);
  }
  await update();
}

/** Turns on this browser, and the switch, which another tab or browser may have turned off. */
async function turnOn() {
  const problem = await savePreferences({ notify: "yes" }, pushPart.dataset.failed);
  if (problem) showToast(problem);
  else await setPush(true);
}

/** Asks for permission when the switch is turned on. Resolves to whether the choice may be stored. */
export async function allowChange() {
  if (!notifyBox.checked || (await requestPermission())) return true;
  notifyBox.checked = false;
  await update();
  return false;
}

/** Turns push messages on or off after the switch has been stored. */
export const applyChange = () => setPush(notifyBox.checked);

export function connect() {
  update();
  pushPart?.addEventListener("click", async ({ target }) => {
    const act = target.closest("[data-push]")?.dataset.push;
    if (act === "on" && (await requestPermission())) await turnOn();
    if (act === "test") {
      const result = await subscribing.sendTest(pushPart.dataset.failed).catch((error) => error);
      showToast(result.message);
    }
  });
}
