// The session list and the actions on each session.
import { post } from "../net/http.js";
import { copyLink } from "../ui/clipboard.js";
import { offer, on } from "../ui/commands.js";
import { copyOf } from "../ui/dom.js";
import { fill, words } from "../ui/i18n.js";
import { openMenu, swallowClick, whenHeld } from "../ui/popover.js";
import { toast } from "../ui/toast.js";
import { keepFresh, organise, refresh, show, showsArchive, tellHandedOver } from "./organise.js";
import * as selection from "./selection.js";
import * as workspaces from "./workspaces.js";

const list = document.getElementById("rail-list");
const HOLD = 500; // ms
const rowOf = (element) => element?.closest(".rail-row");
const open = () => document.getElementById(`rail-${list.dataset.current}`);
const mayBegin = () => document.getElementById("rail-new") !== null; // guests can't
const titleOf = (row) => row.querySelector(".rail-title").textContent;
const yes = (row, name) => row.dataset[name] === "yes";

/** Switches between archived and other sessions. */
async function showArchive() {
  selection.end();
  if (!(await show({ archived: showsArchive() ? "" : "yes", shown: "" }))) return toast(words.notLoaded);
  list.scrollTop = 0;
  document.getElementById(showsArchive() ? "rail-back" : "account")?.focus();
}

function menu(row) {
  openMenu(row.querySelector(".rail-dots"), items(row), { label: fill(words.menuOf, { title: titleOf(row) }) });
}

/** Returns the actions on a session; users can leave, not delete, a session of another person. */
function items(row) {
  const id = row.dataset.session;
  const one = (action, icon, label, more) => ({ icon, label, run: () => organise(action, [id]), ...more });
  const pin = yes(row, "pinned") ? one("unpin", "pin-off", words.unpin) : one("pin", "pin", words.pin);
  const archive = yes(row, "archived")
    ? one("restore", "archive-restore", words.unarchive)
    : one("archive", "archive", words.archive);
  const end = yes(row, "mine")
    ? one("delete", "trash-2", words.delete, { danger: true })
    : one("leave", "door-open", words.leave, { danger: true });
  const more = [
    { icon: "pencil", label: words.rename, run: () => rename(row) },
    pin,
    { icon: "link", label: words.copyLink, run: () => copyLink(row.querySelector(".rail-item").href) },
    { icon: "list-checks", label: words.select, run: () => selection.begin(row) },
    ...(yes(row, "mine") ? [archive] : []),
  ];
  return [more, [end]];
}

/** Renames in place: Enter or leaving the field saves, Escape cancels. */
function rename(row) {
  const form = copyOf("rail-rename");
  const field = form.querySelector("input");
  const before = titleOf(row);
  let over = false;
  const end = async (keep) => {
    if (over) return;
    over = true;
    const title = field.value.trim();
    const hadFocus = form.contains(document.activeElement);
    form.remove();
    row.classList.remove("renaming");
    if (hadFocus) row.querySelector(".rail-item").focus();
    if (keep && title && title !== before) await keepTitle(row, title, before);
  };
  field.value = before;
  form.addEventListener("submit", (event) => (event.preventDefault(), end(true)));
  field.addEventListener("blur", () => end(true));
  field.addEventListener("keydown", (event) => {
    event.stopPropagation();
    if (event.key === "Escape" && !event.isComposing) end(false);
  });
  row.classList.add("renaming");
  row.append(form);
  field.select();
}

async function keepTitle(row, title, before) {
  const shown = row.querySelector(".rail-title");
  shown.textContent = title;
  try {
    await post(`${row.querySelector(".rail-item").pathname}title`, { title }, words.notDone);
  } catch (error) {
    shown.textContent = before;
    toast(error.message);
  }
  await refresh();
}

/** Offers the actions on the open session, for the palette and the header's menu. */
function offerActions() {
  const row = open();
  const can = (condition) => () => open() !== null && condition(open());
  const id = list.dataset.current;
  const pinned = row !== null && yes(row, "pinned");
  const one = (action, more) => offer({ id: action, run: () => organise(action, [id]), ...more });
  offer({
    id: "pin",
    label: pinned ? words.unpin : words.pin,
    icon: pinned ? "pin-off" : "pin",
    run: () => organise(pinned ? "unpin" : "pin", [id]),
    can: can(() => true),
  });
  one("archive", {
    label: words.archive,
    icon: "archive",
    slash: "archive",
    can: can((now) => yes(now, "mine") && !yes(now, "archived")),
  });
  one("restore", { label: words.unarchive, icon: "archive-restore", can: can((now) => yes(now, "archived")) });
  one("leave", { label: words.leave, icon: "door-open", can: can((now) => !yes(now, "mine")) });
  one("delete", { label: words.delete, icon: "trash-2", can: can((now) => yes(now, "mine")) });
}

/** Opens the menu on a long press, without a click; some browsers fire `contextmenu` before that. */
function press(event) {
  const row = rowOf(event.target);
  if (event.pointerType !== "touch" || !row || event.target.closest("button, input")) return;
  const held = () => {
    swallowClick();
    menu(row);
  };
  whenHeld(event, HOLD, held, ["contextmenu"]);
}

/** `isRung` returns whether the page receives changes of the list. */
export function connect(isRung) {
  on("rail-menu", (button) => menu(rowOf(button)));
  on("leave", () => organise("leave", [list.dataset.current]));
  on("rail-more", async (button) => {
    button.disabled = true;
    if (!(await show({ shown: button.dataset.shown }))) toast(words.notLoaded);
    button.disabled = false;
  });
  on("rail-archive", showArchive);
  list.addEventListener("contextmenu", (event) => {
    const row = rowOf(event.target);
    if (!row || event.target.closest("input")) return;
    event.preventDefault();
    if (row.querySelector(".rail-dots").ariaExpanded !== "true") menu(row);
  });
  offer({
    id: "new",
    label: words.newSession,
    icon: "square-pen",
    keys: "Ctrl+Shift+O",
    slash: list.dataset.current ? "new" : "",
    run: () => location.assign(list.dataset.home),
    can: mayBegin,
  });
  offer({
    id: "archived",
    label: words.archivedSessions,
    icon: "archive",
    run: showArchive,
    can: () => !showsArchive(),
  });
  offerActions();
  list.addEventListener("parley:listed", offerActions);
  workspaces.connect();
  selection.connect();
  list.addEventListener("pointerdown", press);
  keepFresh(isRung);
  tellHandedOver();
}
