// The panel's files tab: the session's workspace, one folder or file at a time. Fetched again after changes.
import { textAt } from "../net/http.js";
import { on } from "../ui/commands.js";
import { parse, patchChildren } from "../ui/dom.js";
import { words } from "../ui/i18n.js";
import { localise } from "../ui/time.js";

const SOON = 300;
// Large folders take a while to list: wait this share of the time between requests.
const REST = 4;
const STIRS = ["files", "status", "synced"];
const address = document.getElementById("panel").dataset.files;
const body = document.getElementById("panel-files");
let path = "";
let asked = 0;
let due = 0;
let took = 0;

/** Shows a file or folder from now on. */
export function show(wanted) {
  if (wanted !== path) body.scrollTop = 0;
  path = wanted;
}

/** Fetches the content. */
export async function refresh() {
  clearTimeout(due);
  due = 0;
  const mine = ++asked;
  const began = performance.now();
  const html = await textAt(`${address}?${new URLSearchParams({ path })}`);
  if (mine !== asked) return;
  took = performance.now() - began;
  if (html !== null) draw(html);
  else if (!body.querySelector("section")) body.textContent = words.panelLost;
}

/** Fetches the content soon after a change, once for several changes. */
export function stir(op) {
  if (STIRS.includes(op) && !due) due = setTimeout(refresh, Math.max(SOON, REST * took));
}

function draw(html) {
  const fresh = parse(html);
  const held = document.activeElement?.dataset?.path;
  // An image is loaded again only if the file has changed: its address has the time of the last change.
  patchChildren(body, fresh);
  localise(body);
  if (held !== undefined && document.activeElement === document.body) linkTo(held)?.focus({ preventScroll: true });
}

const linkTo = (wanted) => body.querySelector(`[data-action="file-go"][data-path="${CSS.escape(wanted)}"]`);

/** Goes to a file or folder. The focus goes to the way back, or to the folder from which the user came. */
async function go({ dataset }) {
  const from = path;
  show(dataset.path);
  await refresh();
  const target = linkTo(from) ?? body.querySelector("[data-way-back]") ?? body.querySelector("a, button");
  target?.focus({ preventScroll: true });
}

export function connect() {
  on("file-go", (link, event) => {
    event.preventDefault();
    go(link);
  });
}
