// Notifies a user of mentions in sessions that this page does not show: the list marks them (LIVE-07).
import { words } from "../ui/i18n.js";
import { notifyElsewhere } from "../ui/notify.js";

const list = document.getElementById("rail-list");
const known = new Map(); // of each session, the revision of the last mention

/** Returns the rows with mentions that are new, and remembers these. */
function fresh() {
  const rows = [...list.querySelectorAll("[data-mentioned=yes]")];
  const isFresh = ({ dataset: { session, mention } }) => Number(mention) > (known.get(session) ?? 0);
  return rows.filter((row) => {
    const isNew = isFresh(row);
    if (isNew) known.set(row.dataset.session, Number(row.dataset.mention));
    return isNew;
  });
}

function look() {
  for (const row of fresh()) {
    const { session } = row.dataset;
    if (session === list.dataset.current) continue;
    const title = row.querySelector(".rail-title").textContent;
    notifyElsewhere(title, words.youAreMentioned, { session, url: row.querySelector(".rail-item").pathname });
  }
}

export function connect() {
  fresh();
  list.addEventListener("parley:listed", look);
}
