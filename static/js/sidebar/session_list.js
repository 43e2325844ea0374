// The session list: the actions on each session, and selecting several.
import { post } from "../net/http.js";
import { copyLink } from "../ui/clipboard.js";
import { offer, on } from "../ui/commands.js";
import { copyOf } from "../ui/dom.js";
import { fill, words } from "../ui/i18n.js";
import { go } from "../ui/leaving.js";
import { openMenu, swallowClick, whenHeld } from "../ui/popover.js";
import { toast } from "../ui/toast.js";
import * as mentions from "./mentions.js";
import { connectWorkspaces, keepFresh, organise, refresh, show, showsArchive, tellHandedOver } from "./organise.js";

const list = document.getElementById("rail-list");
const HOLD = 500; // ms
const rowOf = (element) => element?.closest(".rail-row");
const open = () => document.getElementById(`rail-${list.dataset.current}`);
const mayBegin = () => document.getElementById("rail-new") !== null; // guests can't
const titleOf = (row) => row.querySelector(".rail-title").textContent;
const yes = (row, name) => row.dataset[name] === "yes";

/** Switches between archived and other sessions. */
async function showArchive() {
  endSelection();
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
    { icon: "list-checks", label: words.select, run: () => beginSelection(row) },
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
    run: () => go(list.dataset.home),
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
  connectWorkspaces();
  mentions.connect();
  connectSelection();
  list.addEventListener("pointerdown", press);
  keepFresh(isRung);
  tellHandedOver();
}

// Selecting several sessions, to archive or delete them together.

const rail = document.getElementById("rail");
const bar = document.getElementById("rail-bulk");
const chosen = new Set();
let lastChosen = "";

const rows = () => [...list.querySelectorAll(".rail-row")];
const isOn = () => rail.classList.contains("selecting");

/** Starts with one row. */
function beginSelection(row) {
  rail.classList.add("selecting");
  bar.hidden = false;
  choose([row], true);
  row.querySelector(".rail-check").focus();
}

function endSelection() {
  if (!isOn()) return;
  const focused = bar.contains(document.activeElement) || list.contains(document.activeElement);
  rail.classList.remove("selecting");
  bar.hidden = true;
  chosen.clear();
  drawChosen();
  if (focused) (document.getElementById(`rail-link-${lastChosen}`) ?? list).focus();
}

function choose(some, wanted) {
  for (const { dataset } of some) wanted ? chosen.add(dataset.session) : chosen.delete(dataset.session);
  lastChosen = some.at(-1).dataset.session;
  drawChosen();
}

/** With Shift, selects all rows from the one selected before. */
function toggled(row, withRange) {
  const all = rows();
  const [from, to] = [all.findIndex(({ dataset }) => dataset.session === lastChosen), all.indexOf(row)];
  const wanted = !chosen.has(row.dataset.session);
  const some = withRange && from >= 0 ? all.slice(Math.min(from, to), Math.max(from, to) + 1) : [row];
  choose(from > to && withRange ? some.reverse() : some, wanted);
}

function drawChosen() {
  for (const row of rows()) {
    const isChosen = chosen.has(row.dataset.session);
    row.classList.toggle("chosen", isChosen);
    row.querySelector(".rail-check").checked = isChosen;
  }
  document.getElementById("rail-count").textContent = isOn() ? fill(words.selected, { count: chosen.size }) : "";
}

async function organiseChosen(action) {
  const ids = [...chosen];
  endSelection();
  if (ids.length) await organise(action, ids);
}

function connectSelection() {
  list.addEventListener("click", (event) => {
    const row = event.target.closest(".rail-row");
    if (!isOn() || !row || event.target.closest(".rail-dots")) return;
    if (!event.target.matches(".rail-check")) event.preventDefault(); // do not open the session
    toggled(row, event.shiftKey);
  });
  rail.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !isOn()) return;
    event.stopPropagation();
    endSelection();
  });
  list.addEventListener("parley:listed", () => {
    const there = new Set(rows().map(({ dataset }) => dataset.session));
    for (const id of chosen) if (!there.has(id)) chosen.delete(id);
    drawChosen();
  });
  on("bulk-archive", () => organiseChosen(list.querySelector("#rail-back") ? "restore" : "archive"));
  on("bulk-delete", () => organiseChosen("delete"));
  on("bulk-end", endSelection);
}
