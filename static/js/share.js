// The share dialog while it is open: it follows who comes and goes, and finds people by name.
import { dress } from "./faces.js";
import htmx from "../vendor/htmx/htmx.esm.min.js";

const EVERY = 4000;

/** Keeps the list of people in the dialog up to date until it closes. */
export function follow(dialog) {
  const timer = setInterval(() => {
    const people = dialog.querySelector("#share-people");
    if (people && !document.hidden && !people.contains(document.activeElement)) htmx.trigger(people, "refresh");
  }, EVERY);
  const drawn = ({ detail }) => {
    dress(dialog);
    if (detail.ctx.request?.method.toUpperCase() === "POST") land(dialog); // a frame of the session is swapped in, too
  };
  dialog.addEventListener("input", find);
  document.addEventListener("htmx:after:swap", drawn);
  const stop = () => {
    clearInterval(timer);
    document.removeEventListener("htmx:after:swap", drawn);
    dialog.removeEventListener("input", find);
  };
  dialog.addEventListener("close", stop, { once: true });
}

/** What was pressed may be gone with what it did: whoever pressed it goes on at what came of it. */
function land(dialog) {
  const link = dialog.querySelector("#invite-link");
  if (!link && dialog.contains(document.activeElement)) return;
  (link ?? dialog.querySelector(".dialog-body")).focus();
  link?.select();
}

function find({ target }) {
  if (!target.matches("[data-find]")) return;
  const wanted = target.value.toLowerCase();
  const list = document.getElementById(target.dataset.find);
  for (const row of list.children) row.hidden = !row.textContent.toLowerCase().includes(wanted);
}
