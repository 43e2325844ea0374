// The panel's context tab: what the model gets next, or was sent for an answer. Fetched again after changes.
import { insist } from "../messages/insist.js";
import { reveal } from "../messages/scroll.js";
import { canEdit, live, page } from "../messages/session.js";
import { on } from "../ui/commands.js";
import { parse, patchChildren } from "../ui/dom.js";
import { fill, words } from "../ui/i18n.js";
import { openMenu } from "../ui/popover.js";
import { localise } from "../ui/time.js";
import { toast } from "../ui/toast.js";
import { tab } from "./tab.js";

const STIRS = ["message", "remove", "shift", "context", "session", "status", "synced"];
const address = document.getElementById("panel").dataset.context;
const body = document.getElementById("panel-context");
const switching = new Set();
let shown = { past: "", until: "", agent: "" };
let makeWay = () => {};

/** Shows the next request, or the one for the answer that a message belongs to. */
export function show(past) {
  if (past !== shown.past) body.scrollTop = 0;
  shown = { ...shown, past, until: past === shown.past ? shown.until : "" };
}

export const { refresh, stir } = tab({ body, address, query: () => shown, stirs: STIRS, draw });

function draw(html) {
  const fresh = parse(html);
  const held = document.activeElement?.dataset?.include;
  align(fresh);
  patchChildren(body, fresh);
  for (const box of body.querySelectorAll("[data-include]")) {
    if (!switching.has(box.dataset.include)) box.checked = box.hasAttribute("checked");
  }
  for (const chosen of body.querySelectorAll("#context-agent > [selected]")) chosen.parentElement.value = chosen.value;
  localise(body);
  if (held && document.activeElement === document.body) boxOf(held)?.focus({ preventScroll: true });
}

const boxOf = (id) => body.querySelector(`[data-include="${CSS.escape(id)}"]`);
const keyOf = ({ dataset }) => dataset?.key;

/** Updates the content so that opened details stay with their message. */
function align(fresh) {
  const [list, wanted] = [body, fresh].map((root) => root.querySelector(".context-list"));
  wanted?.replaceChildren(...wanted.children);
  if (!list || !wanted) return;
  const keys = new Set([...wanted.children].map(keyOf));
  for (const each of [...list.childNodes]) if (!keys.has(keyOf(each))) each.remove();
  let at = list.firstElementChild;
  for (const each of wanted.children) {
    if (at && keyOf(at) === keyOf(each)) at = at.nextElementSibling;
    else list.insertBefore(each.cloneNode(true), at);
  }
}

async function turn(box) {
  const id = box.dataset.include;
  switching.add(id);
  const done = await insist(() => live.request({ type: box.checked ? "include" : "exclude", id }));
  switching.delete(id);
  if (done === null && box.isConnected) box.checked = box.hasAttribute("checked");
}

/** Shows the next request to another agent of the session. */
function choose(agent) {
  shown = { ...shown, until: "", agent };
  refresh();
}

// Actions on a message in the list.

/** Opens the menu of a button's message. */
function openMenuOf(button) {
  const id = button.dataset.of;
  const way = { label: words.contextGo, icon: "message-square", run: () => go(id) };
  const changes = [
    { label: words.contextBefore, icon: "eye-off", run: () => leaveOut(id) },
    { label: words.contextBeforeAgain, icon: "eye", run: () => includeBefore({ id }) },
  ];
  const mayChange = canEdit && page.dataset.archived === "no";
  openMenu(button, [[way], mayChange ? changes : []], { label: words.actions });
}

/** Goes to a message in the session; on phones, closes the panel first. */
function go(id) {
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

/** `leave` closes the panel if it covers the messages. */
export function connect(leave) {
  on("use-notes", ({ dataset }) =>
    insist(() => live.request({ type: "configure", memory: dataset.uses === "no" })).then(refresh),
  );
  makeWay = leave;
  body.addEventListener("change", ({ target }) => {
    if (target.id === "context-agent") choose(target.value);
    else if (target.dataset.include) turn(target);
  });
  on("context-more", openMenuOf);
  on("context-go", ({ dataset }, event) => {
    event.preventDefault();
    go(dataset.of);
  });
  on("context-page", async ({ dataset }) => {
    shown.until = dataset.until;
    await refresh();
    body.querySelector(".context-list")?.scrollIntoView({ block: "nearest" });
  });
}
