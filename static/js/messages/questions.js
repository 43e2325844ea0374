// Questions of agents to users (UI-12): drafts of answers, sending answers, and going to the open question.
import { fetchText } from "../net/http.js";
import * as store from "../net/storage.js";
import { onAction, TOUCH } from "../ui/commands.js";
import { createElement, fillFields, isChanged, readFields } from "../ui/dom.js";
import { isComposing, restoreText as restoreToComposer, restoreTextAndFocus } from "../ui/field.js";
import { format, words } from "../ui/i18n.js";
import { announce, showNotice } from "../ui/notice.js";
import { openMenu } from "../ui/popover.js";
import { showToast } from "../ui/toast.js";
import { markApprovals } from "./approvals.js";
import { goToMessage, openQuestion, scrollToEnd } from "./scroll.js";
import { canEdit, live, page } from "./session.js";

const list = document.getElementById("messages");
const FORM = "form[data-question]";
const formOf = (element) => element.closest?.(FORM);

// Functions (form, choice) that return the answer, by the kind of the question. `choice` is the pressed button's value.

const textOf = (form, name) => form.querySelector(`[name="${name}"]`).value;
const chosenIn = (part) => [...part.querySelectorAll(":checked")].map(({ value }) => value);
const withComment = (form, value) => {
  const comment = textOf(form, "comment").trim();
  return comment ? { ...value, comment } : value;
};

const ANSWERS = {
  approval: (form, choice) => {
    if (choice === "refuse") return withComment(form, { approved: false });
    if (choice === "arguments") return { approved: true, arguments: argumentsOf(form) };
    return { approved: true, scope: choice };
  },
  confirmation: (_form, choice) => ({ confirmed: choice === "yes" }),
  selection: chosenIn,
  action_selection: (_form, choice) => choice,
  feedback: (form) => Object.fromEntries(fieldsOf(form).map(valueOf)),
  form: (form) => Object.fromEntries([...fieldsOf(form).map(valueOf), ...choiceSetsOf(form).map(choiceOf)]),
  elicitation: (form, choice) => {
    const number = Number(textOf(form, "number"));
    const asksMore = fieldsOf(form).length + choiceSetsOf(form).length > 0;
    return choice === "accept" && asksMore
      ? { action: choice, content: ANSWERS.form(form), number }
      : { action: choice, number };
  },
  memory: (form, choice) => {
    if (choice !== "save") return { decision: "reject" };
    return { decision: choice, note: textOf(form, "note"), scope: chosenIn(form)[0] };
  },
  plan_review: (form, choice) => {
    if (choice === "edit") return { decision: choice, plan: textOf(form, "plan") };
    return choice === "reject" ? withComment(form, { decision: choice }) : { decision: choice };
  },
};

const idOf = (name) => name.slice("field-".length);
const fieldsOf = (form) => [...form.querySelectorAll("[name^=field-]:not([type=radio], [type=checkbox])")];
const choiceSetsOf = (form) => [...form.querySelectorAll("fieldset[data-name]")];
const valueOf = ({ name, value }) => [idOf(name), value];

function choiceOf(set) {
  const chosen = chosenIn(set);
  const value = set.dataset.type === "choices" ? chosen : chosen.length ? chosen[0] === "yes" : null;
  return [idOf(set.dataset.name), value];
}

function argumentsOf(form) {
  const texts = [...form.querySelectorAll("[name^=argument-]")];
  if (texts.length) return Object.fromEntries(texts.map(({ name, value }) => [name.slice("argument-".length), value]));
  try {
    return JSON.parse(textOf(form, "arguments"));
  } catch (error) {
    throw new Error(format(words.questionNoJson, { error: error.message }), { cause: error });
  }
}

// Sending answers.

// The messages that this page is answering, by id: the revision with the answer, or Infinity until the server reports it.
const sending = new Map();
const invalidFields = new WeakMap(); // by the error of an answer: the field that it is about

/** Sends an answer. If it is refused, the card shows the reason and keeps the user's input. */
async function sendAnswer(form, choice) {
  if (form.ariaBusy === "true") return;
  const { id } = form.closest("article");
  clearError(form);
  const isRefusal = choice === "decline" || choice === "cancel";
  const unreadable = !isRefusal && fieldsOf(form).find(({ validity }) => validity.badInput);
  if (unreadable) return showError(form, unreadable.validationMessage);
  setSending(id, Infinity);
  try {
    const { revision } = await live.request({
      type: "answer",
      id,
      value: ANSWERS[form.dataset.question](form, choice),
    });
    setSending(id, revision);
    handleAnswered(id);
  } catch (refusal) {
    setSending(id, null);
    if (refusal.code === "already_answered") {
      showToast(refusal.message);
      moveToComposer(id);
      return handleAnswered(id);
    }
    showError(form, refusal.message);
  }
}

/** Marks a message as being answered until it is shown in this revision, or, with null, as not being answered. */
function setSending(id, revision) {
  if (revision === null) sending.delete(id);
  else sending.set(id, revision);
  const message = document.getElementById(id);
  if (message) updateBusy(message);
}

/** Marks the card of a message as busy while it is being answered. Other versions of the message do not end that. */
function updateBusy(message) {
  const isBusy = sending.get(message.id) > Number(message.dataset.revision);
  if (!isBusy) sending.delete(message.id);
  const form = message.querySelector(FORM);
  if (form) form.ariaBusy = isBusy ? "true" : null;
}

/**
 * Moves the user's typed text to the composer, because another user has answered, or the agent no longer waits. With
 * `hasFocus`, also moves the focus, so that the user's next keys are not lost.
 */
function moveToComposer(id, hasFocus = document.activeElement === document.body) {
  const texts = store.parseJson(store.readStored(draftName(id)))?.texts ?? [];
  removeDraft(id);
  if (!texts.length || !canEdit) return;
  if (hasFocus && !TOUCH.matches) restoreTextAndFocus(texts.join("\n\n"));
  else restoreToComposer(texts.join("\n\n"));
  showNotice(words.answerRescued, { about: "send" });
}

/** Forgets the draft, and moves the focus from the controls, which are removed next, to their message. */
function handleAnswered(id) {
  removeDraft(id);
  const message = document.getElementById(id);
  const hadFocus = document.activeElement === document.body || message?.contains(document.activeElement);
  if (hadFocus) message?.focus({ preventScroll: true });
}

/** Shows why an answer was refused, at the missing or invalid field, which gets the focus, if there is one. */
function showError(form, text) {
  const error = createElement("p", {
    className: "question-error",
    role: "alert",
    data: { own: "" },
    textContent: text,
  });
  error.id = `${form.closest("article").id}-error`;
  const field = findInvalid(form);
  (field?.closest(".field") ?? form).append(error);
  if (!field) return;
  invalidFields.set(error, field);
  describeError(form);
  (field.matches("fieldset") ? field.querySelector("input") : field).focus();
}

/** Connects the error of an answer with its field. The attributes are lost when the card is rendered again. */
function describeError(form) {
  const error = form.querySelector(".question-error");
  const field = invalidFields.get(error);
  if (!field) return;
  const others = (field.getAttribute("aria-describedby") ?? "").split(" ").filter((id) => id && id !== error.id);
  field.setAttribute("aria-describedby", [error.id, ...others].join(" "));
  field.setAttribute("aria-invalid", "true");
}

function clearError(form) {
  const error = form.querySelector(".question-error");
  if (!error) return;
  for (const field of form.querySelectorAll(`[aria-describedby~="${error.id}"]`)) {
    field.removeAttribute("aria-invalid");
    const rest = field.getAttribute("aria-describedby").replace(error.id, "").trim();
    if (rest) field.setAttribute("aria-describedby", rest);
    else field.removeAttribute("aria-describedby");
  }
  error.remove();
}

function findInvalid(form) {
  const isMissing = (part) => part.matches("[data-required]") && chosenIn(part).length === 0;
  const parts = [...form.querySelectorAll("fieldset, .input")].filter((part) => part.checkVisibility());
  const isCode = (part) => form.dataset.question === "approval" && part.name.startsWith("argument");
  return parts.find((part) => (part.matches("fieldset") ? isMissing(part) : isCode(part) || !part.validity.valid));
}

// Views of a card: the buttons, or a field for a text that is sent with one of them.

function showView(form, view) {
  if (view) form.dataset.shows = view;
  else delete form.dataset.shows;
}

function changeView(button) {
  const form = formOf(button);
  const before = form.dataset.shows;
  clearError(form);
  showView(form, button.dataset.to);
  storeDraft(form);
  const view = form.querySelector(`[data-view="${button.dataset.to || "decide"}"]`);
  view.scrollIntoView({ block: "nearest" });
  view.querySelector(button.dataset.to ? "textarea" : `[data-to="${before}"]`).focus({ preventScroll: true });
}

/** Opens the share dialog. Afterwards, moves the focus to the card if its button has disappeared. */
function openShare(button) {
  const question = button.closest(".question");
  const keepFocus = () => button.checkVisibility() || question.focus({ preventScroll: true });
  document.getElementById("share").addEventListener("close", () => setTimeout(keepFocus), { once: true });
  document.querySelector(".share-button").click();
}

function openScopes(button) {
  const form = formOf(button);
  const scope = (label, icon, choice) => ({ label, icon, run: () => sendAnswer(form, choice) });
  const always = page.dataset.manages === "yes" ? [scope(words.questionAlways, "bot", "agent")] : [];
  openMenu(button, [[scope(words.questionSession, "check", "session"), ...always]], { label: button.title });
}

// Drafts: the user's input survives a new rendering, a reconnection and a reload.

const draftName = (id) => `parley:answer:${page.dataset.viewerId}:${id}`;
const removeDraft = (id) => store.writeStored(draftName(id), "");
const partsOf = (form) => [...form.querySelectorAll("input, textarea, select")];

function storeDraft(form) {
  const parts = partsOf(form);
  const isTyped = (part) =>
    part.matches("textarea, [type=text]") && part.value.trim() && part.value !== part.defaultValue;
  const texts = parts.filter(isTyped).map(({ value }) => value.trim());
  store.writeStored(
    draftName(form.closest("article").id),
    JSON.stringify({ values: readFields(parts), texts, shows: form.dataset.shows ?? "" }),
  );
}

let focusedQuestion = null; // the question that has the focus, or had it until it was answered

/** Handles the end of a question that was not answered on this page. The user may have answered it in another tab. */
function handleClosed(message) {
  const { id, dataset } = message;
  if (sending.has(id)) return;
  if (dataset.answeredBy === page.dataset.viewerId) removeDraft(id);
  else moveToComposer(id);
  if (focusedQuestion?.id === id && document.activeElement === document.body) message.focus({ preventScroll: true });
}

/** Returns whether too few users of the session may be able to approve a call. */
const mayBeStuck = (question) => question?.dataset.may === "no" || question?.dataset.approvals > 1;

const examined = new Set(); // ids of the messages for which the numbers have been fetched

/**
 * Fetches how many users can approve calls in this session, if its owner may have to share it. They are in the share
 * dialog, because pages without such a call do not need them.
 */
async function findApprovers({ id }) {
  if (page.dataset.role !== "owner" || examined.has(id)) return;
  examined.add(id);
  const dialog = await fetchText(document.querySelector(".share-button").getAttribute("hx-get"));
  const found = new DOMParser().parseFromString(dialog ?? "", "text/html").querySelector("[data-approvers-now]");
  if (found) page.dataset.approvers = found.dataset.approversNow;
  else examined.delete(id);
}

/** Fetches the numbers again, because the session has been shared on another page, or a user has been removed. */
function findApproversAgain() {
  examined.clear();
  const question = [...list.querySelectorAll(".question[data-open=yes]")].find(mayBeStuck);
  if (question) findApprovers(question.closest("article"));
}

/** Fills in the draft of an open question. If the question is no longer open, moves the draft to the composer. */
function restoreDraft(message) {
  if (!message.matches?.("article.tool_group")) return;
  updateBusy(message);
  const form = message.querySelector(FORM);
  if (!form) return handleClosed(message);
  describeError(form);
  const question = form.closest("[data-approved]");
  if (mayBeStuck(question)) findApprovers(message);
  const draft = sending.has(message.id) ? null : store.parseJson(store.readStored(draftName(message.id)));
  if (fillFields(partsOf(form), draft?.values)) showView(form, draft.shows);
  else if (question?.dataset.mine === "yes") showView(form, "");
}

/** Shows in the status that the agent waits for others, if this user has approved or may not approve all open calls. */
function updateStatus() {
  const open = [...list.querySelectorAll(".question[data-open=yes]")];
  const isForOthers = open.length > 0 && open.every(({ dataset }) => dataset.waits === "others");
  const { dataset } = document.getElementById("status");
  if (isForOthers) dataset.waits = "others";
  else delete dataset.waits;
}

function connectDrafts() {
  // What the user has entered before this module was loaded replaces an earlier draft.
  for (const form of list.querySelectorAll(FORM)) if (partsOf(form).some(isChanged)) storeDraft(form);
  for (const message of list.children) restoreDraft(message);
  updateStatus();
  new MutationObserver((records) => {
    for (const { addedNodes } of records) for (const node of addedNodes) restoreDraft(node);
    updateStatus();
  }).observe(list, { childList: true });
  // A new version of a row may be a new card, or a card that another user has approved or answered.
  new MutationObserver((records) => {
    for (const { target } of records) restoreDraft(target);
    updateStatus();
  }).observe(list, { subtree: true, attributeFilter: ["data-revision"] });
  // A card is removed with its message, for example while this page was offline.
  const handleGone = ({ target }) =>
    sending.has(target.id) || moveToComposer(target.id, target.contains(document.activeElement));
  list.addEventListener("gone", handleGone, { capture: true }); // the event does not bubble
  live.addEventListener("frame", ({ detail }) => detail.op === "people" && findApproversAgain());
  // A user who can approve has been let in or removed.
  new MutationObserver(() => {
    markApprovals(list);
    updateStatus();
  }).observe(page, { attributeFilter: ["data-approvers"] });
  const setFocusedQuestion = (element) => (focusedQuestion = formOf(element)?.closest("article"));
  setFocusedQuestion(document.activeElement); // it may have had the focus before this module was loaded
  document.addEventListener("focusin", ({ target }) => setFocusedQuestion(target));
  list.addEventListener("input", ({ target }) => {
    const form = formOf(target);
    if (form) storeDraft(form);
  });
}

// Going to the open question.

export async function goTo() {
  if (!openQuestion()) await scrollToEnd();
  const question = openQuestion();
  if (!question) return;
  await goToMessage(question.closest("article").id, { quietly: true });
  question.focus({ preventScroll: true });
}

/** Presses the main button of the visible view on Ctrl+Enter in a field. Goes back to the buttons on Escape. */
function handleKey(event) {
  const form = formOf(event.target);
  if (!form || event.target.matches("button") || isComposing(event)) return;
  const back = event.target.closest(".question-view")?.querySelector('[data-to=""]');
  if (event.key === "Escape" && back) {
    event.preventDefault();
    return changeView(back);
  }
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  form.requestSubmit([...form.querySelectorAll("button[value]")].find((button) => button.checkVisibility()));
}

/** Announces the questions when the agent begins to wait. */
function announceQuestions() {
  if (page.dataset.status !== "waiting") return;
  const questions = [...list.querySelectorAll("[data-asks]")].map(({ dataset }) => dataset.asks);
  if (questions.length) announce(questions.join("\n"));
}

/** Disables the choices of a next step, which viewers only read. New versions of a message have new choices. */
function disableChoices() {
  for (const choice of list.querySelectorAll("button.question-choice")) choice.disabled = true;
}

function keepChoicesDisabled() {
  disableChoices();
  new MutationObserver(disableChoices).observe(list, { childList: true });
  new MutationObserver(disableChoices).observe(list, { subtree: true, attributeFilter: ["data-revision"] });
}

export function connect() {
  new MutationObserver(announceQuestions).observe(page, { attributeFilter: ["data-status"] });
  announceQuestions();
  if (!canEdit) return keepChoicesDisabled();
  connectDrafts();
  onAction("question-view", changeView);
  onAction("question-scopes", openScopes);
  onAction("question-share", openShare);
  // The link opens the page itself.
  onAction("question-open", (link) => sendAnswer(formOf(link), "accept"));
  list.addEventListener("keydown", handleKey);
  list.addEventListener("submit", (event) => {
    if (!formOf(event.target)) return;
    event.preventDefault();
    sendAnswer(event.target, event.submitter?.value);
  });
}
