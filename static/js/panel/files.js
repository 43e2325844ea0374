// The panel's files tab, with one folder or file of the session at a time. It is fetched again after changes.
import { onAction } from "../ui/commands.js";
import { parseHtml, patchChildren } from "../ui/dom.js";
import { localizeTimes } from "../ui/time.js";
import { createTab } from "./tab.js";

const FRAMES = ["files", "status", "synced"];
const address = document.getElementById("panel").dataset.files;
const body = document.getElementById("panel-files");
let path = "";

/** Selects the file or folder that the tab shows from now on. */
export function setPath(wanted) {
  if (wanted !== path) body.scrollTop = 0;
  path = wanted;
}

export const { refresh, refreshAfter } = createTab({
  body,
  address,
  query: () => ({ path }),
  frames: FRAMES,
  draw: showContent,
});

function showContent(html) {
  const fresh = parseHtml(html);
  const focusedPath = document.activeElement?.dataset?.path;
  // The address of an image contains the time of its last change, so the browser loads only changed images again.
  patchChildren(body, fresh);
  localizeTimes(body);
  if (focusedPath !== undefined && document.activeElement === document.body)
    findLink(focusedPath)?.focus({ preventScroll: true });
}

const findLink = (wanted) => body.querySelector(`[data-action="file-go"][data-path="${CSS.escape(wanted)}"]`);

/** Goes to a file or folder. Moves the focus to the link back, or to the link of the folder that was left. */
async function goToPath({ dataset }) {
  const from = path;
  setPath(dataset.path);
  await refresh();
  const target = findLink(from) ?? body.querySelector("[data-way-back]") ?? body.querySelector("a, button");
  target?.focus({ preventScroll: true });
}

export function connect() {
  onAction("file-go", (link, event) => {
    event.preventDefault();
    goToPath(link);
  });
}
