// What a reader does with the session as a whole: find words in it, go to its end, copy or repeat the last answer.
import { offer } from "./deeds.js";
import { isBehind, withControl } from "./keyboard.js";
import { late } from "./late.js";
import { copy, edit } from "./message_menu.js";
import { isOver, lastMessage } from "./messages.js";
import { canEdit, page } from "./page.js";
import { retry } from "./retry.js";
import { toEnd, toStart } from "./scroll.js";
import { fullTime } from "./time.js";
import { words } from "./words.js";

async function find(text = "") {
  (await late(() => import("./find.js")))?.open(text);
}

function goToLast() {
  const message = lastMessage();
  message?.focus({ preventScroll: true });
  message?.scrollIntoView({ block: "nearest" });
}

/** Opens our own search first, which knows the whole session; pressed in it, the keys are the browser's. */
function keys(event) {
  if (event.defaultPrevented || event.shiftKey || isBehind()) return;
  const isFind = event.key === "f" && withControl(event);
  const isUp = event.key === "ArrowUp" && event.altKey && !event.ctrlKey && !event.metaKey;
  if (isFind && event.target.closest?.(".find")) return;
  const isStart = event.key === "Home" && withControl(event) && !event.target.matches?.("input, textarea");
  if (isFind) find();
  else if (isUp) goToLast();
  else if (isStart) toStart();
  if (isFind || isUp || isStart) event.preventDefault();
}

export function start() {
  document.addEventListener("keydown", keys);
  addEventListener("beforeprint", () => (document.querySelector(".top").dataset.printed = fullTime(new Date())));
  const mine = `.user[data-user-id="${page.dataset.viewerId}"]`;
  offer({ id: "find", label: words.find, icon: "search", keys: "Ctrl+F", slash: "find", run: find, can: () => Boolean(lastMessage()) });
  offer({ id: "first", label: words.firstGo, icon: "arrow-up", keys: "Ctrl+Home", slash: "first", run: toStart, can: () => Boolean(lastMessage()) });
  offer({ id: "latest", label: words.latest, icon: "arrow-down", slash: "latest", run: toEnd, can: () => Boolean(lastMessage()) });
  offer({ id: "go-last", label: words.lastGo, icon: "arrow-up", keys: "Alt+↑", run: goToLast, can: () => Boolean(lastMessage()) });
  offer({ id: "copy-last", label: words.lastCopy, icon: "copy", slash: "copy", run: () => copy(lastMessage(".assistant")), can: () => Boolean(lastMessage(".assistant")) });
  offer({ id: "print", label: words.print, icon: "printer", slash: "print", run: () => print(), can: () => Boolean(lastMessage()) });
  if (!canEdit) return;
  offer({ id: "edit-last", label: words.lastEdit, icon: "pencil", slash: "edit", run: () => edit(lastMessage(mine)), can: () => Boolean(lastMessage(mine)) });
  offer({ id: "retry-last", label: words.lastRetry, icon: "rotate-ccw", slash: "retry", run: () => retry(again()), can: () => Boolean(again()) });
}

/** The last answer that can be given again. */
function again() {
  const message = lastMessage(":is(.assistant, .error)");
  return message && isOver(message) && page.dataset.status === "idle" ? message : null;
}
