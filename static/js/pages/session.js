// The session page: connects its parts.
import { Composer } from "../composer/composer.js";
import * as queue from "../composer/queue.js";
import * as opener from "../dialogs/opener.js";
import * as header from "../header/header.js";
import * as actions from "../messages/actions.js";
import { reopenEdits } from "../messages/actions.js";
import * as attempts from "../messages/attempts.js";
import * as content from "../messages/content.js";
import * as fork from "../messages/fork.js";
import { FrameQueue, showIdleAgain, showThinking } from "../messages/frames.js";
import { prepareRendered, updateDayLabels } from "../messages/list.js";
import * as notifications from "../messages/notifications.js";
import * as retrying from "../messages/retry.js";
import { continueAnswer, retry } from "../messages/retry.js";
import * as scroll from "../messages/scroll.js";
import { canEdit, live, page } from "../messages/session.js";
import * as summary from "../messages/summary.js";
import * as toolbar from "../messages/toolbar.js";
import { readTab, writeTab } from "../net/storage.js";
import * as panel from "../panel/opener.js";
import * as sessionList from "../sidebar/session_list.js";
import { addCommand, isDialogOpen, movesCaret, onAction } from "../ui/commands.js";
import { removeInvalidCharacters, restoreText, suggestText } from "../ui/field.js";
import { words } from "../ui/i18n.js";
import { connectAll, lazyImport } from "../ui/loading.js";
import { clearNoticeAfterSuccess, showNotice } from "../ui/notice.js";
import * as shell from "../ui/shell.js";
import { localizeTimes, onMidnight } from "../ui/time.js";
import { showToast } from "../ui/toast.js";
import { connectCommon } from "./common.js";

const byId = (id) => document.getElementById(id);

connectCommon();
connectAll(content, actions, retrying, fork, queue, header, notifications, panel, opener);

const frameQueue = new FrameQueue({ onMissing: () => live.sync(), onDelivered: showDelivered, queue });
const composer = canEdit ? new Composer(showThinking) : null;

live.have = () => frameQueue.streamStates();
live.addEventListener("frame", ({ detail }) => {
  frameQueue.enqueue(detail);
  if (detail.op !== "synced") return;
  frameQueue.flush(); // the page then shows the messages that have arrived
  composer?.restoreStale();
});
live.addEventListener("open", () => composer?.resend());
live.addEventListener("state", ({ detail: { state } }) => state === "closed" && composer?.close());
live.addEventListener("answer", ({ detail: answer }) => {
  const [kind, key] = String(answer.ref ?? "").split(":");
  if (answer.type === "refused") showRefusal(kind, key, answer);
  else if (kind === "send") {
    clearNoticeAfterSuccess("send");
    composer.confirmed(key, byId(answer.id) !== null);
    if (!answer.queued && !answer.turn_id) showIdleAgain(); // the message is not for the agent
  }
});

onAction("expand", (button) => {
  button.previousElementSibling.dataset.expanded = "";
  button.closest(".message").focus({ preventScroll: true });
});

let questions = null; // the module for questions, when it is loaded
const loadQuestions = async () => (questions ??= await lazyImport(() => import("../messages/questions.js")));
const goToQuestion = async () => (await loadQuestions())?.goTo();

/** Loads the module for questions when there is one, because most sessions have none. Repeats earlier clicks. */
function connectQuestions() {
  const list = byId("messages");
  list.addEventListener("submit", async (event) => {
    const { target: form, submitter } = event;
    if (questions || !form.matches("[data-question]")) return;
    event.preventDefault();
    if (await loadQuestions()) form.requestSubmit(submitter);
  });
  list.addEventListener("click", async ({ target }) => {
    const button = target.closest("[data-question] [data-action]");
    if (button && !questions && (await loadQuestions())) button.click();
  });
  live.addEventListener("frame", ({ detail: { op, html } }) => {
    if (op === "message" && html.includes('class="question"')) loadQuestions();
  });
  if (list.querySelector(".question")) loadQuestions();
}

/** Connects the command, the key, the button and the notifications that lead to the open question. */
function connectQuestionLinks() {
  const can = () => scroll.openQuestion() !== null;
  const command = { id: "question", label: words.questionGo, icon: "circle-help", keys: "Alt+↓", slash: "question" };
  addCommand({ ...command, run: goToQuestion, can });
  onAction("question-go", goToQuestion);
  document.addEventListener("keydown", (event) => {
    const isDown = event.key === "ArrowDown" && event.altKey && !event.ctrlKey && !event.metaKey && !event.shiftKey;
    if (!isDown || event.defaultPrevented || isDialogOpen()) return;
    // In some fields Alt+↓ opens a list or a calendar.
    if (event.target.matches?.("select, input") || movesCaret(event) || !can()) return;
    event.preventDefault();
    goToQuestion();
  });
  // Notifications about waiting sessions link to this address.
  if (location.hash === "#waiting") {
    history.replaceState(null, "", location.pathname);
    goToQuestion();
  }
  navigator.serviceWorker?.addEventListener("message", ({ data }) => {
    if (data?.hash === "#waiting") goToQuestion();
    else if (data?.hash) location.hash = data.hash;
  });
}

/** Adds a style for agents that wait for approvals: if this user has approved, they show that they wait for others. */
function addAgreedStyle() {
  const asked = `[data-can-edit="yes"] .asked[data-agreed~="${page.dataset.viewerId}"]`;
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(`${asked} .for-editors { display: none } ${asked} .for-others { display: revert }`);
  document.adoptedStyleSheets.push(sheet);
}

onAction("suggestions", async (button) =>
  (await lazyImport(() => import("../messages/details.js")))?.toggleSuggestions(button),
);
onAction("prompt", (button) => suggestText(button.value));
onAction("retry", (button) => retry(button.dataset));
onAction("continue", () => continueAnswer());

function showRefusal(kind, key, { code, message }) {
  if (kind === "send") composer.refused(key);
  showIdleAgain();
  const action =
    code === "not_storable" && kind === "send" ? { label: words.removeThem, run: removeInvalidCharacters } : null;
  showNotice(message, { action, about: kind });
}

function showDelivered(text) {
  restoreText(text);
  showNotice(words.delivered, { about: "send" });
}

/** Shows a message if the user's role has changed since the page was last loaded in this tab. */
function showRoleChange() {
  const { session, role } = page.dataset;
  const before = readTab(`parley:role:${session}`);
  if (before && before !== role)
    showToast({ owner: words.nowOwner, editor: words.nowEditor, viewer: words.nowViewer }[role]);
  writeTab(`parley:role:${session}`, role);
}

prepareRendered([...byId("messages").children]);
showRoleChange();
prepareRendered([...byId("queue").querySelectorAll(".queued[id]")]);
connectAll(summary, scroll, toolbar, attempts);
connectQuestions();
connectQuestionLinks();
addAgreedStyle();
shell.connect(async (title) => {
  try {
    await live.request({ type: "rename", title });
    clearNoticeAfterSuccess("rename");
  } catch (refusal) {
    return refusal.message;
  }
});
sessionList.connect(() => live.state === "connected");
addEventListener("beforeprint", () => updateDayLabels(byId("messages"), { whole: true }));
addEventListener("afterprint", () => updateDayLabels(byId("messages")));
for (const origin of document.querySelectorAll(".origin")) localizeTimes(origin);
onMidnight(() => {
  localizeTimes(document.body);
  updateDayLabels(byId("messages"));
});
composer?.restoreStale();
live.connect();
reopenEdits();
