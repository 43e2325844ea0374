// Drafts: stored at once in this browser, and soon on the server for the user's other devices.
import { live, page } from "../messages/session.js";
import * as store from "../net/storage.js";
import { parse } from "../ui/dom.js";
import { begin, field, write } from "../ui/field.js";

const EVERY = 2_000;
const NAME = `parley:draft:${page.dataset.viewerId}:${page.dataset.session}`;
const ASKED_AT = Date.now() - performance.now(); // when this page was requested
// `said` is the draft that the server has; a different one was typed here since. `told` may still be on its way there.
let said = field?.defaultValue ?? "";
let saidAt = 0;
let told = said;
let timer = 0;
let sentAt = 0;
let mirrored = null; // another tab's draft, until the user types here

/** Starts with the newest draft: this browser's, or the server's when the page was rendered. */
export function connect() {
  const mine = store.parsed(store.kept(NAME));
  begin(mine && isNewer(mine) ? mine.text : field.defaultValue);
  field.setSelectionRange(field.value.length, field.value.length); // continue at the end
  field.addEventListener("input", edited);
  addEventListener("storage", followed);
  addEventListener("pagehide", flush);
  document.addEventListener("visibilitychange", () => document.hidden && flush());
  live.addEventListener("open", soon);
  live.addEventListener("frame", ({ detail }) => detail.op === "message" && sentElsewhere(detail));
}

/** Whether this browser's draft is newer than the one that the server rendered. */
function isNewer({ text, said, at, saidAt }) {
  return (text !== said && at >= Number(field.dataset.draftAt || 0)) || saidAt > ASKED_AT;
}

/** Sends the draft to the server at once. */
function flush() {
  clearTimeout(timer);
  timer = 0;
  const text = field.value;
  if (text === told || live.state !== "connected") return;
  told = text;
  sentAt = Date.now();
  live.request({ type: "draft", text }).then(
    () => known(text),
    () => (told = said), // it stays in this browser and is sent with the next change
  );
}

/** Leaves the stored draft alone: another tab may have a newer one. */
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
 * Shows another tab's draft unless this tab has a different one of its own. The previous value in the storage is not
 * always the one that this tab has seen, because tabs write at the same time.
 */
function followed(event) {
  if (event.key !== NAME) return;
  const [before, after] = [store.parsed(event.oldValue), store.parsed(event.newValue)];
  said = told = after?.said ?? "";
  const isFollowing = field.value === mirrored || field.value === (before?.text ?? "");
  if (isFollowing && field.value !== (after?.text ?? "")) follow(after?.text ?? "");
}

/** Clears a draft that was sent from another device. */
function sentElsewhere({ id, html }) {
  if (!field.value || field.value !== said || document.getElementById(id)) return;
  const message = parse(html).firstElementChild;
  if (message?.dataset.userId !== page.dataset.viewerId) return;
  if (!message.querySelector(".plain, .queued-text")?.textContent.startsWith(field.value)) return;
  said = told = "";
  follow("");
  keep();
}

/** Shows a draft from another tab or device. */
function follow(text) {
  mirrored = text;
  field.removeEventListener("input", edited);
  write(text);
  field.addEventListener("input", edited);
}
