// The session page: connects its parts.
import { Composer } from "../composer/composer.js";
import * as queue from "../composer/queue.js";
import * as opener from "../dialogs/opener.js";
import * as header from "../header/header.js";
import * as actions from "../messages/actions.js";
import { continueAnswer, reopenEdits, retry } from "../messages/actions.js";
import * as attempts from "../messages/attempts.js";
import * as citations from "../messages/citations.js";
import * as content from "../messages/content.js";
import { Inbox, showIdleAgain, showThinking } from "../messages/frames.js";
import { adopt, renew } from "../messages/list.js";
import * as notifications from "../messages/notifications.js";
import * as scroll from "../messages/scroll.js";
import { ask, canEdit, live, page } from "../messages/session.js";
import * as summary from "../messages/summary.js";
import * as toolbar from "../messages/toolbar.js";
import { keepInTab, keptInTab } from "../net/storage.js";
import * as panel from "../panel/opener.js";
import * as rail from "../sidebar/session_list.js";
import { isBehind, offer, on } from "../ui/commands.js";
import { cleanText, restore } from "../ui/field.js";
import { words } from "../ui/i18n.js";
import { connectAll, late } from "../ui/late.js";
import { notice, settle } from "../ui/notice.js";
import * as shell from "../ui/shell.js";
import { atMidnight, localise } from "../ui/time.js";
import { toast } from "../ui/toast.js";
import { connectCommon } from "./common.js";

const at = (id) => document.getElementById(id);

connectCommon();
connectAll(content, citations, actions, queue, header, notifications, panel, opener);

const inbox = new Inbox({ missing: () => live.sync(), overtaken, queue });
const composer = canEdit ? new Composer(showThinking) : null;

live.have = () => inbox.have();
live.addEventListener("frame", ({ detail }) => inbox.put(detail));
live.addEventListener("open", () => composer?.resend());
live.addEventListener("state", ({ detail: { state } }) => state === "closed" && composer?.close());
live.addEventListener("answer", ({ detail: answer }) => {
  const [kind, key] = String(answer.ref ?? "").split(":");
  if (answer.type === "refused") refused(kind, key, answer);
  else if (kind === "send") {
    settle("send");
    composer.confirmed(key, at(answer.id) !== null);
    if (!answer.queued && !answer.turn_id) showIdleAgain(); // it is not for the agent
  }
});

on("expand", (button) => {
  button.previousElementSibling.dataset.expanded = "";
  button.closest(".message").focus({ preventScroll: true });
  button.remove();
});
/** Loads what questions need with the first of them: most sessions have none. What is pressed before is done then. */
function connectQuestions() {
  const list = at("messages");
  let module = null;
  const load = async () => (module ??= await late(() => import("../messages/questions.js")));
  const goTo = async () => (await load())?.goTo();
  const isAsked = () => scroll.openQuestion() !== null;
  offer({
    id: "question",
    label: words.questionGo,
    icon: "circle-help",
    keys: "Alt+↓",
    slash: "question",
    run: goTo,
    can: isAsked,
  });
  on("question-go", goTo);
  document.addEventListener("keydown", (event) => {
    const isDown = event.key === "ArrowDown" && event.altKey && !event.ctrlKey && !event.metaKey && !event.shiftKey;
    // Alt+↓ opens lists and calendars, in fields that have them.
    if (!isDown || event.defaultPrevented || isBehind() || event.target.matches?.("select, input") || !isAsked())
      return;
    event.preventDefault();
    goTo();
  });
  list.addEventListener("submit", async (event) => {
    const { target: form, submitter } = event;
    if (module || !form.matches("[data-question]")) return;
    event.preventDefault();
    if (await load()) form.requestSubmit(submitter);
  });
  list.addEventListener("click", async ({ target }) => {
    const button = target.closest("[data-question] [data-action]");
    if (button && !module && (await load())) button.click();
  });
  live.addEventListener("frame", ({ detail: { op, html } }) => {
    if (op === "message" && html.includes('class="question"')) load();
  });
  if (list.querySelector(".question")) load();
  // A notification leads here, to this page or to a new one.
  if (location.hash === "#waiting") {
    history.replaceState(null, "", location.pathname);
    goTo();
  }
  navigator.serviceWorker?.addEventListener("message", ({ data }) => {
    if (data?.hash === "#waiting") goTo();
    else if (data?.hash) location.hash = data.hash;
  });
}

on("suggestions", async (button) => (await late(() => import("../messages/details.js")))?.toggleSuggestions(button));
on("prompt", (button) => composer.suggest(button.value));
on("retry", (button) => retry(button.dataset));
on("continue", () => continueAnswer());

function refused(kind, key, { code, message }) {
  if (kind === "send") composer.refused(key);
  showIdleAgain();
  const action = code === "not_storable" && kind === "send" ? { label: words.removeThem, run: cleanText } : null;
  notice(message, { action, about: kind });
}

function overtaken(text) {
  restore(text);
  notice(words.delivered, { about: "send" });
}

/** Shows, after a reload, that the user's role has changed. */
function tellRole() {
  const { session, role } = page.dataset;
  const before = keptInTab(`parley:role:${session}`);
  if (before && before !== role)
    toast({ owner: words.nowOwner, editor: words.nowEditor, viewer: words.nowViewer }[role]);
  keepInTab(`parley:role:${session}`, role);
}

adopt([...at("messages").children]);
tellRole();
adopt([...at("queue").querySelectorAll(".queued[id]")]);
connectAll(summary, scroll, toolbar, attempts);
connectQuestions();
shell.connect((title) => ask({ type: "rename", title }));
rail.connect(() => live.state === "connected");
addEventListener("beforeprint", () => renew(at("messages"), { whole: true }));
addEventListener("afterprint", () => renew(at("messages")));
for (const origin of document.querySelectorAll(".origin")) localise(origin);
atMidnight(() => {
  localise(document.body);
  renew(at("messages"));
});
if (composer?.restoreStale()) notice(words.kept, { about: "send" });
live.connect();
reopenEdits();
