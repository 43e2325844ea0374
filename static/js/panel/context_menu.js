// What can be done with a message in the context's list.
import { reveal } from "../messages/places.js";
import { insist } from "../messages/retry.js";
import { canEdit, live, page } from "../messages/session.js";
import { fill, words } from "../ui/i18n.js";
import { openMenu } from "../ui/popover.js";
import { toast } from "../ui/toast.js";
import { makeWay } from "./panel.js";

/** Opens the menu of the message that a button is of. */
export function openFor(button) {
  const id = button.dataset.of;
  const items = [{ label: words.contextGo, icon: "message-square", run: () => go(id) }];
  if (canEdit && page.dataset.archived === "no") {
    items.push({ separator: true });
    items.push({ label: words.contextBefore, icon: "eye-off", run: () => leaveOut(id) });
    items.push({ label: words.contextBeforeAgain, icon: "eye", run: () => includeBefore({ id }) });
  }
  openMenu(button, items, { label: words.actions });
}

/** Goes to a message in the session. */
export function go(id) {
  makeWay();
  reveal(id);
}

async function leaveOut(id) {
  const done = await insist(() => live.request({ type: "exclude_before", id }));
  if (!done) return;
  const undo = { label: words.undo, run: () => includeBefore({ id, since: done.since }) };
  toast(fill(words.contextLeftOut, { count: done.count }), done.count ? { action: undo } : {});
}

async function includeBefore(what) {
  const done = await insist(() => live.request({ type: "include_before", ...what }));
  if (done) toast(fill(words.contextIncluded, { count: done.count }));
}
