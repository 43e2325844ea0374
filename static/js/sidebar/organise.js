// The session list's content: which workspace it shows, keeping it up to date, and changes of one or more sessions with
// Undo.
import htmx from "../../vendor/htmx/htmx.esm.min.js";
import { post, textAt } from "../net/http.js";
import { keepInTab, keptInTab } from "../net/storage.js";
import { offer, on } from "../ui/commands.js";
import { confirmed, copyOf } from "../ui/dom.js";
import { know } from "../ui/faces.js";
import { fill, words } from "../ui/i18n.js";
import { go } from "../ui/leaving.js";
import { openMenu, place } from "../ui/popover.js";
import { atMidnight, localise, tellZone } from "../ui/time.js";
import { toast } from "../ui/toast.js";

// Keeps the session list up to date without disturbing what the user does in it.

const SOON = 300;
const EVERY = 15_000;
const NEAR = 40; // pixels from the end of the conversation
const list = document.getElementById("rail-list");
const state = { shown: "", archived: "" };
let due = 0;
let loading = null;

/** Fetches the list at once. Resolves to whether that worked. */
export async function refresh() {
  clearTimeout(due);
  due = 0;
  while (loading) await loading; // a pending answer may be older than this request
  loading = load().finally(() => (loading = null));
  return loading;
}

/** Shows more rows, or another list: {shown: "180"}, {archived: "yes"}. Resolves to whether that worked. */
export async function show(values) {
  const before = { ...state };
  Object.assign(state, values);
  const came = await refresh();
  if (!came) Object.assign(state, before);
  return came;
}

export const showsArchive = () => state.archived === "yes";

/** Fetches the list soon, once for several requests. */
function soon() {
  due ||= setTimeout(refresh, SOON);
}

/** `isRung` returns whether "parley:rail" on the document reports all changes; otherwise the list polls. */
export function keepFresh(isRung) {
  if (tellZone().isNew) soon();
  localise(list);
  document.addEventListener("parley:rail", ({ detail }) => {
    if (!(detail?.own && showsOwn())) detail?.now ? refresh() : soon();
  });
  setInterval(() => document.hidden || isRung() || soon(), EVERY);
  document.addEventListener("visibilitychange", () => document.hidden || soon());
  addEventListener("pageshow", (event) => event.persisted && soon());
  atMidnight(soon);
}

/**
 * Shows in the row of the open session whether its agent works, after a change of this session alone. Returns false if
 * more than that may have changed: the row's place, its title, or whether it is unread. Then the list must be fetched.
 */
function showsOwn() {
  const row = document.getElementById(`rail-${list.dataset.current}`);
  const log = document.getElementById("log");
  if (!row || !log || document.hidden || loading || showsArchive() || row.querySelector(".rail-rename")) return false;
  const { status, archived } = document.getElementById("main").dataset;
  const isFirst = row.dataset.pinned === "yes" || row === list.querySelector("#rail-group-today .rail-row");
  const isRead = log.scrollHeight - log.scrollTop - log.clientHeight < NEAR;
  const title = document.querySelector('[data-part="title"]')?.textContent;
  const isSame =
    row.dataset.waiting === "no" &&
    row.dataset.mentioned === "no" &&
    status !== "waiting" &&
    row.dataset.archived === (archived || "no");
  if (!isFirst || !isRead || !isSame || row.querySelector(".rail-title").textContent !== title) return false;
  row.classList.remove("is-unread");
  const time = row.querySelector(".rail-time");
  while (time.previousElementSibling.matches(".pulse, .unread")) time.previousElementSibling.remove();
  if (status !== "idle") time.before(copyOf("rail-working"));
  time.dateTime = new Date().toISOString();
  localise(row);
  return true;
}

async function load() {
  if (list.querySelector(".rail-rename")) return soon() ?? false; // the user is renaming a session
  const query = new URLSearchParams({ ...state, current: list.dataset.current, workspace: shownWorkspace() });
  const text = await textAt(`${list.dataset.address}?${query}`);
  if (text === null) return false;
  if (list.querySelector(".rail-rename")) return soon() ?? false;
  await morph(text);
  return true;
}

/** Keeps the elements of rows by their ids, also when they move, so that the focus stays. */
async function morph(text) {
  const focused = list.contains(document.activeElement) ? document.activeElement.id : "";
  const top = list.scrollTop;
  await htmx.swap({ text, target: list, sourceElement: list, swap: "innerMorph" });
  localise(list);
  list.scrollTop = top;
  place();
  if (focused && document.activeElement === document.body)
    (document.getElementById(focused) ?? list).focus({ preventScroll: true });
  const faces = document.getElementById("rail-faces");
  if (faces) know(JSON.parse(faces.dataset.faces));
  list.dispatchEvent(new Event("parley:listed", { bubbles: true }));
}

const GOES = ["delete", "leave"];
const SECONDS = 8;
const HANDED_OVER = "parley:done";

/** Carries out an action of chat/services/sessions/actions.py on sessions, by their ids. Asks if the server wants that. */
export async function organise(action, ids, { final = false, sure = false } = {}) {
  try {
    const values = [["action", action], ...ids.map((id) => ["session", id]), ...(sure ? [["sure", "yes"]] : [])];
    const done = await post(list.dataset.organise, values, words.notDone);
    if (done.asks) return (await agrees(done.asks, ids.length)) && organise(action, ids, { final, sure: true });
    if (GOES.includes(action) && done.ids.includes(list.dataset.current)) return goHome(done);
    tell(final ? { ...done, undo: "" } : done);
  } catch (error) {
    toast(error.message);
  }
  await refresh();
}

/** Asks whether to delete sessions that other people use, too; resolves to the answer. */
function agrees(question, count) {
  const title = count > 1 ? fill(words.deleteSessions, { count }) : words.deleteSession;
  return confirmed({ title, text: question, button: words.delete });
}

function tell({ ids, words: said, undo }) {
  const action = undo && { label: words.undo, run: () => organise(undo, ids, { final: true }) };
  if (said) toast(said, { action: action || null, seconds: SECONDS });
}

/** Leaves for home, which shows the toast with Undo: the open session is gone. */
function goHome(done) {
  keepInTab(HANDED_OVER, done);
  location.assign(list.dataset.home);
}

/** Shows the toast that the previous page has handed over. */
export function tellHandedOver() {
  const done = keptInTab(HANDED_OVER);
  keepInTab(HANDED_OVER, null);
  if (done) tell(done);
}

// The user's workspaces: which one this page shows, and switching. A single workspace is not shown.

const button = document.getElementById("rail-switch");
// The workspace in which home's form creates a session; "" is the user's current one.
const begins = document.querySelector("#begin [name=workspace]");

/** The workspaces, as last received: {id, name, initials, colour, address, here, unread}. */
const places = () => JSON.parse(document.getElementById("rail-places").dataset.places);

/** The id of the workspace that this page shows; "" if there is only one. */
export const shownWorkspace = () => String(places().find(({ here }) => here)?.id ?? "");

const goTo = ({ address }) => go(address);

function item(place) {
  return { label: place.name, checked: place.here, unread: place.unread ? words.unread : "", run: () => goTo(place) };
}

/** Updates what was rendered with the page. */
function draw() {
  const all = places();
  const here = all.find((place) => place.here);
  button.hidden = all.length < 2;
  if (begins) begins.value = here?.id ?? "";
  if (here) {
    const face = button.querySelector(".face");
    face.textContent = here.initials;
    face.className = `face small ${here.colour}`;
    button.querySelector(".rail-place").textContent = here.name;
    button.querySelector(".unread").hidden = !all.some(({ unread }) => unread);
  }
  all.forEach(offerWay);
}

function offerWay({ id, name, address }) {
  const there = () => places().find((place) => place.id === id);
  const can = () => there()?.here === false;
  offer({
    id: `workspace-${id}`,
    label: fill(words.goToWorkspace, { name }),
    icon: "chevrons-up-down",
    can,
    run: () => go(address),
  });
}

export function connectWorkspaces() {
  on("workspaces", () => openMenu(button, [places().map(item)], { label: words.workspaces }));
  draw();
  list.addEventListener("parley:listed", draw);
}
