// Questions of agents to people (UI-12): drafts of answers, sending them, and going to the open question.
import * as store from "../net/storage.js";
import { on, TOUCH } from "../ui/commands.js";
import { enteredIn, fillFields, make } from "../ui/dom.js";
import { composing, restore as restoreToComposer, restoreTyped } from "../ui/field.js";
import { fill, words } from "../ui/i18n.js";
import { notice, say } from "../ui/notice.js";
import { openMenu } from "../ui/popover.js";
import { toast } from "../ui/toast.js";
import { openQuestion, reveal, toEnd } from "./scroll.js";
import { canEdit, live, page } from "./session.js";

const list = document.getElementById("messages");
const FORM = "form[data-question]";
// The roles in the workspace that may approve a call, by what its rule asks for.
const APPROVERS = { admin: ["owner", "admin"], owner: ["owner"] };
const formOf = (element) => element.closest?.(FORM);

// What an answer is, by the kind of the question. `choice` is the value of the pressed button.

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
  form: (form) => Object.fromEntries([...fieldsOf(form).map(valueOf), ...setsOf(form).map(chosenOf)]),
  elicitation: (form, choice) => {
    const number = Number(textOf(form, "number"));
    const asksMore = fieldsOf(form).length + setsOf(form).length > 0;
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
const setsOf = (form) => [...form.querySelectorAll("fieldset[data-name]")];
const valueOf = ({ name, value }) => [idOf(name), value];

function chosenOf(set) {
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
    throw new Error(fill(words.questionNoJson, { error: error.message }), { cause: error });
  }
}

// Sending.

const sending = new Set(); // ids of the messages that this page is answering

/** Sends an answer. A refusal is shown in the card, where everything that was entered stays. */
async function send(form, choice) {
  if (form.ariaBusy === "true") return;
  const { id } = form.closest("article");
  settle(form);
  const isRefusal = choice === "decline" || choice === "cancel";
  const unreadable = !isRefusal && fieldsOf(form).find(({ validity }) => validity.badInput);
  if (unreadable) return refuse(form, unreadable.validationMessage);
  form.ariaBusy = "true"; // until the message is rendered again
  sending.add(id);
  try {
    await live.request({ type: "answer", id, value: ANSWERS[form.dataset.question](form, choice) });
    answered(id);
  } catch (refusal) {
    if (refusal.code === "already_answered") {
      toast(refusal.message);
      rescue(id);
      return answered(id);
    }
    form.ariaBusy = null;
    refuse(form, refusal.message);
  } finally {
    sending.delete(id);
  }
}

/** Moves what a user has typed to the composer, because another person has answered or the wait is over. */
function rescue(id) {
  const texts = store.parsed(store.kept(nameOf(id)))?.texts ?? [];
  forget(id);
  if (!texts.length || !canEdit) return;
  // Its fields have left the page, and what is typed next would be lost.
  if (document.activeElement === document.body && !TOUCH.matches) restoreTyped(texts.join("\n\n"));
  else restoreToComposer(texts.join("\n\n"));
  notice(words.answerRescued, { about: "send" });
}

/** Forgets the draft, and moves the focus from the controls, which are about to go, to their message. */
function answered(id) {
  forget(id);
  const message = document.getElementById(id);
  const hadFocus = document.activeElement === document.body || message?.contains(document.activeElement);
  if (hadFocus) message?.focus({ preventScroll: true });
}

/** Shows why an answer was not taken, at the field that is missing or wrong if one can be found, and goes there. */
function refuse(form, text) {
  const error = make("p", { className: "question-error", role: "alert", data: { own: "" }, textContent: text });
  error.id = `${form.closest("article").id}-error`;
  const field = wrong(form);
  (field?.closest(".field") ?? form).append(error);
  if (!field) return;
  field.setAttribute("aria-describedby", [error.id, field.getAttribute("aria-describedby")].filter(Boolean).join(" "));
  field.setAttribute("aria-invalid", "true");
  (field.matches("fieldset") ? field.querySelector("input") : field).focus();
}

function settle(form) {
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

function wrong(form) {
  const isMissing = (part) => part.matches("[data-required]") && chosenIn(part).length === 0;
  const parts = [...form.querySelectorAll("fieldset, .input")].filter((part) => part.checkVisibility());
  const isCode = (part) => form.dataset.question === "approval" && part.name.startsWith("argument");
  return parts.find((part) => (part.matches("fieldset") ? isMissing(part) : isCode(part) || !part.validity.valid));
}

// Views of a card: the buttons, or a text to go with one of them.

function show(form, view) {
  if (view) form.dataset.shows = view;
  else delete form.dataset.shows;
}

function turn(button) {
  const form = formOf(button);
  const before = form.dataset.shows;
  settle(form);
  show(form, button.dataset.to);
  keep(form);
  const view = form.querySelector(`[data-view="${button.dataset.to || "decide"}"]`);
  view.scrollIntoView({ block: "nearest" });
  view.querySelector(button.dataset.to ? "textarea" : `[data-to="${before}"]`).focus({ preventScroll: true });
}

function openScopes(button) {
  const form = formOf(button);
  const scope = (label, icon, choice) => ({ label, icon, run: () => send(form, choice) });
  const always = page.dataset.manages === "yes" ? [scope(words.questionAlways, "bot", "agent")] : [];
  openMenu(button, [[scope(words.questionSession, "check", "session"), ...always]], { label: button.title });
}

// Drafts: what was entered survives a new rendering, a reconnection and a reload.

const nameOf = (id) => `parley:answer:${page.dataset.viewerId}:${id}`;
const forget = (id) => store.keep(nameOf(id), "");
const partsOf = (form) => [...form.querySelectorAll("input, textarea, select")];

function keep(form) {
  const parts = partsOf(form);
  const isTyped = (part) =>
    part.matches("textarea, [type=text]") && part.value.trim() && part.value !== part.defaultValue;
  const texts = parts.filter(isTyped).map(({ value }) => value.trim());
  store.keep(
    nameOf(form.closest("article").id),
    JSON.stringify({ values: enteredIn(parts), texts, shows: form.dataset.shows ?? "" }),
  );
}

let held = null; // the question that has the focus, or had it until it was answered

/** Handles the end of a question, unless this page's own answer is on the way. Another tab may have sent it. */
function closed(message) {
  const { id, dataset } = message;
  if (sending.has(id)) return;
  if (dataset.answeredBy === page.dataset.viewerId) forget(id);
  else rescue(id);
  if (held?.id === id && document.activeElement === document.body) message.focus({ preventScroll: true });
}

/** Shows what a call that several people or certain roles have to approve wants of this viewer. */
function showStanding(question) {
  const { approvers, approved } = question.dataset;
  question.dataset.mine = (approved ?? "").split(" ").includes(page.dataset.viewerId) ? "yes" : "no";
  question.dataset.may = !approvers || APPROVERS[approvers].includes(page.dataset.workspaceRole) ? "yes" : "no";
}

/** Fills in the draft of an open question; that of one which is answered goes to the composer. */
function restore(message) {
  if (!message.matches?.("article.tool_group")) return;
  const form = message.querySelector(FORM);
  if (!form) return closed(message);
  const question = form.closest("[data-approved]");
  if (question) showStanding(question);
  const draft = sending.has(message.id) ? null : store.parsed(store.kept(nameOf(message.id)));
  if (fillFields(partsOf(form), draft?.values)) show(form, draft.shows);
  else if (question?.dataset.mine === "yes") show(form, "");
}

/** Tells a viewer who has approved all that is asked that the agent waits for others. */
function showAgreed() {
  const open = [...list.querySelectorAll(".question[data-open=yes]")];
  const isAgreed = open.length > 0 && open.every(({ dataset }) => dataset.mine === "yes");
  document.getElementById("status").dataset.mine = isAgreed ? "yes" : "no";
}

function connectDrafts() {
  for (const message of list.children) restore(message);
  showAgreed();
  new MutationObserver((records) => {
    for (const { addedNodes } of records) for (const node of addedNodes) restore(node);
    showAgreed();
  }).observe(list, { childList: true });
  // Someone else has approved: the new rendering says nothing of this viewer, nor which part of the card was open.
  new MutationObserver((records) => {
    for (const { target } of records) restore(target.closest("article"));
    showAgreed();
  }).observe(list, { subtree: true, attributeFilter: ["data-approved"] });
  new MutationObserver((records) => {
    for (const { target } of records) if (!target.matches("[data-status=waiting]")) closed(target);
    showAgreed();
  }).observe(list, { subtree: true, attributeFilter: ["data-status"] });
  const hold = (element) => (held = formOf(element)?.closest("article"));
  hold(document.activeElement); // it may have had the focus before this script was there
  document.addEventListener("focusin", ({ target }) => hold(target));
  list.addEventListener("input", ({ target }) => {
    const form = formOf(target);
    if (form) keep(form);
  });
}

// Going to the open question.

export async function goTo() {
  if (!openQuestion()) await toEnd();
  const question = openQuestion();
  if (!question) return;
  await reveal(question.closest("article").id, { quietly: true });
  question.focus({ preventScroll: true });
}

/** Ctrl+Enter in a field presses the main button of the visible part. */
function submits(event) {
  const form = formOf(event.target);
  if (!form || event.target.matches("button") || composing(event)) return;
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  form.requestSubmit([...form.querySelectorAll("button[value]")].find((button) => button.checkVisibility()));
}

/** Announces the questions when the agent begins to wait. */
function announce() {
  if (page.dataset.status !== "waiting") return;
  const asked = [...list.querySelectorAll("[data-asks]")].map(({ dataset }) => dataset.asks);
  if (asked.length) say(asked.join("\n"));
}

export function connect() {
  new MutationObserver(announce).observe(page, { attributeFilter: ["data-status"] });
  announce();
  if (!canEdit) return;
  connectDrafts();
  on("question-view", turn);
  on("question-scopes", openScopes);
  // The link opens the page itself.
  on("question-open", (link) => send(formOf(link), "accept"));
  list.addEventListener("keydown", submits);
  list.addEventListener("submit", (event) => {
    if (!formOf(event.target)) return;
    event.preventDefault();
    send(event.target, event.submitter?.value);
  });
}
