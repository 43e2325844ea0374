// The notifications of the settings page: the user's switch, and whether this browser gets push messages.
import { parse } from "../ui/dom.js";
import * as push from "../ui/push.js";
import { localise } from "../ui/time.js";
import { toast } from "../ui/toast.js";

const at = (id) => document.getElementById(id);
const part = at("push"); // not there if the server cannot send
const list = at("browsers");
const box = document.querySelector("#notify [name=notify]");

// iPads call themselves Macs, which have no touch screens.
const isApple =
  /iPhone|iPad/.test(navigator.userAgent) || (/Mac/.test(navigator.userAgent) && navigator.maxTouchPoints > 1);
let isFailed = false;

async function state() {
  if (!push.isSupported())
    return isApple && !navigator.standalone ? "home-screen" : isSecureContext ? "unsupported" : "insecure";
  if (Notification.permission !== "granted") return "off";
  if (await push.subscription()) return "on";
  return isFailed ? "failed" : "off";
}

async function show() {
  if (!part) return;
  const now = await state();
  for (const text of part.querySelectorAll("[data-push-state]")) text.hidden = text.dataset.pushState !== now;
  part.querySelector("[data-push=test]").hidden = now !== "on" || !box.checked;
  part.querySelector("[data-push=on]").hidden = !["off", "failed"].includes(now) || !box.checked;
  part.hidden = !box.checked && now !== "home-screen";
}

/** Asks the browser for permission; shows a refusal. Resolves to whether notifications may be shown. */
async function isAllowed() {
  const answer = "Notification" in window ? await Notification.requestPermission() : "denied";
  at("notify-refused").hidden = answer === "granted" || !("Notification" in window);
  return answer === "granted";
}

/** Turns push messages on or off in this browser, as far as it can get any. */
async function turn(isOn) {
  if (!part || !push.isSupported()) return show();
  isFailed = false;
  try {
    const { browsers } = await (isOn
      ? push.turnOn(part.dataset.key, part.dataset.failed)
      : push.turnOff(part.dataset.failed));
    list.replaceChildren(...parse(browsers).childNodes);
    localise(list);
  } catch (error) {
    isFailed = isOn;
    if (!(error instanceof DOMException)) toast(error.message);
  }
  await show();
}

/** Asks for permission when the switch is turned on; resolves to whether the choice is to be stored. */
export async function mayChange() {
  if (!box.checked || (await isAllowed())) return true;
  box.checked = false;
  await show();
  return false;
}

/** Follows the switch, once it is stored. */
export const changed = () => turn(box.checked);

export function connect() {
  show();
  part?.addEventListener("click", async ({ target }) => {
    const act = target.closest("[data-push]")?.dataset.push;
    if (act === "on" && (await isAllowed())) await turn(true);
    if (act === "test") {
      const said = await push.test(part.dataset.failed).catch((error) => error);
      toast(said.message);
    }
  });
}
