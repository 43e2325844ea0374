// Archiving, deleting, pinning … sessions, one or many, with a way back.
import { refresh } from "./refresh.js";
import { post } from "./server.js";
import { keepInTab, keptInTab } from "./store.js";
import { toast } from "./toast.js";
import { words } from "./words.js";

const GOES = ["delete", "leave"];
const SECONDS = 8;
const HANDED_OVER = "parley:done";
const list = document.getElementById("rail-list");

/** Does a deed (chat/services/sessions/actions.py has them) with sessions, by their ids. */
export async function organise(deed, ids, { final = false } = {}) {
  try {
    const done = await post(list.dataset.organise, [["action", deed], ...ids.map((id) => ["session", id])], words.notDone);
    if (GOES.includes(deed) && done.ids.includes(list.dataset.current)) return goHome(done);
    tell(final ? { ...done, undo: "" } : done);
  } catch (error) {
    toast(error.message);
  }
  await refresh();
}

function tell({ ids, words: said, undo }) {
  const action = undo && { label: words.undo, run: () => organise(undo, ids, { final: true }) };
  if (said) toast(said, { action: action || null, seconds: SECONDS });
}

/** The open session is no more: what was done, and its way back, are told at home. */
function goHome(done) {
  keepInTab(HANDED_OVER, done);
  location.assign(list.dataset.home);
}

/** Tells what another page has handed over. */
export function tellHandedOver() {
  const done = keptInTab(HANDED_OVER);
  keepInTab(HANDED_OVER, null);
  if (done) tell(done);
}
