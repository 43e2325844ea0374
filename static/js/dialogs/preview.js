// The preview of HTML or SVG from an answer, in a frame without access to the page and the network.
import { isDialogOpen, PHONE } from "../ui/commands.js";
import { cloneTemplate, createElement } from "../ui/dom.js";

const ADDRESS = "/frames/preview";
const page = document.getElementById("main");
const panel = document.getElementById("panel");
let preview = null;
let opener = null;
let backWatcher = null;

/** Shows the preview of a code block, or of the element that the button names. */
export function openPreview(button) {
  preview ??= buildPreview();
  opener = button;
  const block = document.getElementById(button.dataset.source) ?? button.closest(".code");
  const code = block.querySelector("pre").textContent;
  const frame = createElement("iframe", {
    title: preview.querySelector("h2").textContent,
    sandbox: "allow-scripts allow-forms",
    referrerPolicy: "no-referrer",
    src: ADDRESS,
  });
  frame.addEventListener("load", () => frame.contentWindow.postMessage(code, "*"), { once: true });
  preview.querySelector("iframe")?.remove();
  preview.append(frame);
  preview.hidden = false;
  updateInert();
  preview.focus({ preventScroll: true });
}

function buildPreview() {
  const created = cloneTemplate("preview-template");
  panel.after(created);
  created.querySelector("button").addEventListener("click", closePreview);
  created.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || event.defaultPrevented || isDialogOpen()) return;
    event.preventDefault();
    closePreview();
  });
  addEventListener("message", ({ source, data }) => {
    if (data === "close" && source && source === created.querySelector("iframe")?.contentWindow) closePreview();
  });
  PHONE.addEventListener("change", updateInert);
  return created;
}

function closePreview() {
  if (preview.hidden) return;
  const isFocusLost = document.activeElement === document.body || preview.contains(document.activeElement);
  preview.hidden = true;
  preview.querySelector("iframe").remove(); // ends its scripts
  updateInert();
  if (isFocusLost) (opener.isConnected ? opener : page).focus({ preventScroll: true });
}

/** Makes the panel inert while the preview covers it, and on phones also the page. There, Back closes the preview. */
function updateInert() {
  panel.inert = !preview.hidden;
  page.inert = PHONE.matches && (!preview.hidden || !panel.hidden);
  backWatcher?.destroy();
  backWatcher = null;
  if (preview.hidden || !PHONE.matches || !globalThis.CloseWatcher) return;
  backWatcher = new CloseWatcher();
  backWatcher.onclose = closePreview;
}
