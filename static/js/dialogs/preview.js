// The preview of HTML or SVG from an answer, in a frame without access to the page and the network.
import { isBehind, PHONE } from "../ui/commands.js";
import { copyOf, make } from "../ui/dom.js";

const ADDRESS = "/frames/preview";
const page = document.getElementById("main");
const panel = document.getElementById("panel");
let side = null;
let opener = null;
let wayBack = null;

/** Shows the preview of a code block. */
export function open(button) {
  side ??= build();
  opener = button;
  const code = button.closest(".code").querySelector("pre").textContent;
  const frame = make("iframe", {
    title: side.querySelector("h2").textContent,
    sandbox: "allow-scripts",
    referrerPolicy: "no-referrer",
    src: ADDRESS,
  });
  frame.addEventListener("load", () => frame.contentWindow.postMessage(code, "*"), { once: true });
  side.querySelector("iframe")?.remove();
  side.append(frame);
  side.hidden = false;
  isolate();
  side.focus({ preventScroll: true });
}

function build() {
  const made = copyOf("preview-template");
  panel.after(made);
  made.querySelector("button").addEventListener("click", close);
  made.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || event.defaultPrevented || isBehind()) return;
    event.preventDefault();
    close();
  });
  addEventListener("message", ({ source, data }) => {
    if (data === "close" && source && source === made.querySelector("iframe")?.contentWindow) close();
  });
  PHONE.addEventListener("change", isolate);
  return made;
}

function close() {
  if (side.hidden) return;
  const lost = document.activeElement === document.body || side.contains(document.activeElement);
  side.hidden = true;
  side.querySelector("iframe").remove(); // ends its scripts
  isolate();
  if (lost) (opener.isConnected ? opener : page).focus({ preventScroll: true });
}

/** Covers the panel, and on phones the page, where the Back button closes it. */
function isolate() {
  panel.inert = !side.hidden;
  page.inert = PHONE.matches && (!side.hidden || !panel.hidden);
  wayBack?.destroy();
  wayBack = null;
  if (side.hidden || !PHONE.matches || !globalThis.CloseWatcher) return;
  wayBack = new CloseWatcher();
  wayBack.onclose = close;
}
