// Notifies a user of mentions in sessions that this page does not show: the list marks them (LIVE-07).
import { words } from "../ui/i18n.js";
import { notifyElsewhere } from "../ui/notify.js";

const list = document.getElementById("rail-list");
let known = new Set();

const marked = () => [...list.querySelectorAll("[data-mentioned=yes]")];

function look() {
  const rows = marked();
  const fresh = rows.filter(({ dataset: { session } }) => !known.has(session) && session !== list.dataset.current);
  known = new Set(rows.map(({ dataset }) => dataset.session));
  for (const row of fresh) {
    const title = row.querySelector(".rail-title").textContent;
    const url = row.querySelector(".rail-item").pathname;
    notifyElsewhere(title, words.youAreMentioned, { session: row.dataset.session, url });
  }
}

export function connect() {
  known = new Set(marked().map(({ dataset }) => dataset.session));
  list.addEventListener("parley:listed", look);
}
