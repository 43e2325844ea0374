// Addresses of single messages (`#m_…`): going to them, wherever in the session they are.
import { notice } from "./notice.js";
import { restore, take } from "./scroll.js";
import { words } from "./words.js";

const ADDRESS = /^#(m_[0-9a-z]+)$/;
const log = document.getElementById("log");

/** Goes to a message, loads what stands around it where need be, and shows for a moment, unless `quietly`, which it is. */
export async function reveal(id, { quietly = false } = {}) {
  if (!(await take({ id, top: log.clientHeight / 2 }, bring))) return notice(words.messageGone);
  if (quietly) return;
  const message = document.getElementById(id);
  message.focus({ preventScroll: true });
  flash(message);
}

/** Goes where the address says, or where the reader was. */
export async function start() {
  addEventListener("hashchange", follow);
  document.addEventListener("click", ({ target }) => target.closest?.("a[href]")?.href === location.href && follow());
  if (!(await restore())) await follow();
}

async function follow() {
  const id = ADDRESS.exec(location.hash)?.[1];
  if (id) await reveal(id);
}

function bring(message) {
  message.scrollIntoView({ block: message.offsetHeight > log.clientHeight * 0.8 ? "start" : "center" });
}

function flash(message) {
  const accent = getComputedStyle(message).getPropertyValue("--accent-soft");
  const ground = [{ backgroundColor: accent, borderRadius: "10px" }, { backgroundColor: accent, offset: 0.6 }, { backgroundColor: "transparent" }];
  message.animate(ground, { duration: 2400, easing: "ease-out" });
}
