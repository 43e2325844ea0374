// What is being written, kept: at once in this browser, and soon on the server for the person's other devices.
import { live, page } from "../messages/session.js";
import * as store from "../net/storage.js";
import { parse } from "../ui/dom.js";
import { begin, field, write } from "../ui/field.js";

const EVERY = 2_000;
const NAME = `parley:draft:${page.dataset.viewerId}:${page.dataset.session}`;
const ASKED_AT = Date.now() - performance.now(); // when this page was asked for
// `said` is what the server has of it: a draft that differs was written here since. `told` may still be on its way there.
let said = field?.defaultValue ?? "";
let saidAt = 0;
let told = said;
let timer = 0;
let sentAt = 0;
let mirrored = null; // what another tab wrote, as long as nobody writes on here

/** Begins with the newest draft: this browser's, or the server's as it was when this page was made there. */
export function connect() {
  const mine = store.parsed(store.kept(NAME));
  begin(mine && isNewer(mine) ? mine.text : field.defaultValue);
  field.setSelectionRange(field.value.length, field.value.length); // one goes on at the end
  field.addEventListener("input", edited);
  addEventListener("storage", followed);
  addEventListener("pagehide", flush);
  document.addEventListener("visibilitychange", () => document.hidden && flush());
  live.addEventListener("open", soon);
  live.addEventListener("frame", ({ detail }) => detail.op === "message" && sentElsewhere(detail));
}

/** Whether the page cannot know it: the server did not, and has no newer one; or it learnt of it while the page came. */
function isNewer({ text, said, at, saidAt }) {
  return (text !== said && at >= Number(field.dataset.draftAt || 0)) || saidAt > ASKED_AT;
}

/** Tells the server at once. */
function flush() {
  clearTimeout(timer);
  timer = 0;
  const text = field.value;
  if (text === told || live.state !== "connected") return;
  told = text;
  sentAt = Date.now();
  live.request({ type: "draft", text }).then(
    () => known(text),
    () => (told = said), // it stays in this browser, and is told with the next change
  );
}

/** The words that are kept stay: another tab may have written on, and would take these for newer ones. */
function known(text) {
  said = text;
  saidAt = Date.now();
  keep(store.parsed(store.kept(NAME)) ?? undefined);
}

function edited() {
  mirrored = null;
  keep();
  if (field.value) soon();
  else flush();
}

function soon() {
  if (field.value !== told) timer ||= setTimeout(flush, Math.max(0, sentAt + EVERY - Date.now()));
}

function keep({ text, at } = { text: field.value, at: Date.now() }) {
  store.keep(NAME, text || said ? JSON.stringify({ text, said, at, saidAt }) : "");
}

/**
 * Another tab wrote: who has nothing of their own here follows. What stood in the storage before is not always what this
 * tab has seen of it, because tabs write there at the same time.
 */
function followed(event) {
  if (event.key !== NAME) return;
  const [before, after] = [store.parsed(event.oldValue), store.parsed(event.newValue)];
  said = told = after?.said ?? "";
  const isFollowing = field.value === mirrored || field.value === (before?.text ?? "");
  if (isFollowing && field.value !== (after?.text ?? "")) follow(after?.text ?? "");
}

/** What became a message on another device is no draft any more; the server has forgotten it, too. */
function sentElsewhere({ id, html }) {
  if (!field.value || field.value !== said || document.getElementById(id)) return;
  const message = parse(html).firstElementChild;
  if (message?.dataset.userId !== page.dataset.viewerId) return;
  if (!message.querySelector(".plain, .queued-text")?.textContent.startsWith(field.value)) return;
  said = told = "";
  follow("");
  keep();
}

/** Writes what was written elsewhere. */
function follow(text) {
  mirrored = text;
  field.removeEventListener("input", edited);
  write(text);
  field.addEventListener("input", edited);
}
