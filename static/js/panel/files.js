// The panel's files tab: the session's workspace, one folder or file at a time. Fetched again after changes.
import { on } from "../ui/commands.js";
import { parse, patchChildren } from "../ui/dom.js";
import { localise } from "../ui/time.js";
import { tab } from "./tab.js";

const STIRS = ["files", "status", "synced"];
const address = document.getElementById("panel").dataset.files;
const body = document.getElementById("panel-files");
let path = "";

/** Shows a file or folder from now on. */
export function show(wanted) {
  if (wanted !== path) body.scrollTop = 0;
  path = wanted;
}

export const { refresh, stir } = tab({ body, address, query: () => ({ path }), stirs: STIRS, draw });

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
