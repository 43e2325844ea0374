// The panel's context tab: the next request to the model, or the request for an earlier answer. Fetched after changes.
import { tryRequest } from "../messages/requests.js";
import { goToMessage } from "../messages/scroll.js";
import { canEdit, live, page } from "../messages/session.js";
import { onAction } from "../ui/commands.js";
import { parseHtml, patchChildren } from "../ui/dom.js";
import { format, words } from "../ui/i18n.js";
import { openMenu } from "../ui/popover.js";
import { alignRows } from "../ui/rows.js";
import { localizeTimes } from "../ui/time.js";
import { showToast } from "../ui/toast.js";
import { createTab } from "./tab.js";

const FRAMES = ["message", "remove", "shift", "context", "session", "status", "synced"];
const address = document.getElementById("panel").dataset.context;
const body = document.getElementById("panel-context");
const pendingIds = new Set();
let query = { past: "", until: "", agent: "" };
let closeIfCovering = () => {};

/** Selects the request to show: the next one, or that for the answer which contains the message `past`. */
export function showRequest(past) {
  if (past !== query.past) body.scrollTop = 0;
  query = { ...query, past, until: past === query.past ? query.until : "" };
}

export const { refresh, refreshAfter } = createTab({
  body,
  address,
  query: () => query,
  frames: FRAMES,
  draw: showContent,
});

function showContent(html) {
  const fresh = parseHtml(html);
  const focusedId = document.activeElement?.dataset?.include;
  const [list, wanted] = [body, fresh].map((root) => root.querySelector(".context-list"));
  if (list && wanted) alignRows(list, wanted, ({ dataset }) => dataset?.key);
  patchChildren(body, fresh);
  for (const box of body.querySelectorAll("[data-include]")) {
    if (!pendingIds.has(box.dataset.include)) box.checked = box.hasAttribute("checked");
  }
  for (const chosen of body.querySelectorAll("#context-agent > [selected]")) chosen.parentElement.value = chosen.value;
  localizeTimes(body);
  if (focusedId && document.activeElement === document.body) findBox(focusedId)?.focus({ preventScroll: true });
}

const findBox = (id) => body.querySelector(`[data-include="${CSS.escape(id)}"]`);

async function toggleMessage(box) {
  const id = box.dataset.include;
  pendingIds.add(id);
  const done = await tryRequest(() => live.request({ type: box.checked ? "include" : "exclude", id }));
  pendingIds.delete(id);
  if (done === null && box.isConnected) box.checked = box.hasAttribute("checked");
}

/** Shows the next request to another agent of the session. */
function chooseAgent(agent) {
  query = { ...query, until: "", agent };
  refresh();
}

// Actions on a message in the list.

/** Opens the menu of a button's message. */
function openMenuOf(button) {
  const id = button.dataset.of;
  const goTo = { label: words.contextGo, icon: "message-square", run: () => goToAndClose(id) };
  const changes = [
    { label: words.contextBefore, icon: "eye-off", run: () => excludeBefore(id) },
    { label: words.contextBeforeAgain, icon: "eye", run: () => includeBefore({ id }) },
  ];
  const mayChange = canEdit && page.dataset.archived === "no";
  openMenu(button, [[goTo], mayChange ? changes : []], { label: words.actions });
}

/** Goes to a message in the session. On phones, closes the panel first. */
function goToAndClose(id) {
  closeIfCovering();
  goToMessage(id);
}

async function excludeBefore(id) {
  const done = await tryRequest(() => live.request({ type: "exclude_before", id }));
  if (!done) return;
  const undo = { label: words.undo, run: () => includeBefore({ id, since: done.since }) };
  showToast(format(words.contextLeftOut, { count: done.count }), done.count ? { action: undo } : {});
}

async function includeBefore(what) {
  const done = await tryRequest(() => live.request({ type: "include_before", ...what }));
  if (done) showToast(format(words.contextIncluded, { count: done.count }));
}

/** `leave()` closes the panel if it covers the messages. */
export function connect(leave) {
  onAction("use-notes", ({ dataset }) =>
    tryRequest(() => live.request({ type: "configure", memory: dataset.uses === "no" })).then(refresh),
  );
  closeIfCovering = leave;
  body.addEventListener("change", ({ target }) => {
    if (target.id === "context-agent") chooseAgent(target.value);
    else if (target.dataset.include) toggleMessage(target);
  });
  onAction("context-more", openMenuOf);
  onAction("context-go", ({ dataset }, event) => {
    event.preventDefault();
    goToAndClose(dataset.of);
  });
  onAction("context-page", async ({ dataset }) => {
    query.until = dataset.until;
    await refresh();
    body.querySelector(".context-list")?.scrollIntoView({ block: "nearest" });
  });
}
