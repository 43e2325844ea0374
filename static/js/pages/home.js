// The home page. Its composer creates a session with a first message and files. If that fails, text and files are kept.
import {
  commandSource,
  connectCompletion,
  handleCompletionKey,
  mentionSource,
  runIfCommand,
  unescapeSlash,
} from "../composer/completion.js";
import {
  connectDropping,
  connectUploads,
  ensureUploaded,
  forgetSession,
  restoreFiles,
  retryFailed,
  sessionOfFiles,
  startOver,
  takeUploaded,
} from "../composer/uploads.js";
import * as opener from "../dialogs/opener.js";
import { post } from "../net/http.js";
import { connectListSocket, isListSocketConnected } from "../net/socket.js";
import { readStored, readTab, writeStored, writeTab } from "../net/storage.js";
import { addAccountCommands } from "../sidebar/account.js";
import { showsArchive } from "../sidebar/list_content.js";
import * as sessionList from "../sidebar/session_list.js";
import { onAction, TOUCH } from "../ui/commands.js";
import {
  checkLength,
  field,
  growWithText,
  initializeText,
  insertText,
  isSendKey,
  promptToComplete,
  setText,
  suggestText,
} from "../ui/field.js";
import { words } from "../ui/i18n.js";
import { showNotice } from "../ui/notice.js";
import { rowsThatNeedUser, showTabTitle } from "../ui/notify.js";
import * as renderedToasts from "../ui/rendered_toasts.js";
import * as shell from "../ui/shell.js";
import { localizeTimes } from "../ui/time.js";
import { connectCommon } from "./common.js";

const page = document.getElementById("main");
const form = document.getElementById("begin");
// Form.elements.model would include the button.
const [agent, model] = ["agent", "model"].map((name) => form.querySelector(`[name=${name}]`));
const DRAFT_NAME = `parley:draft:${page.dataset.viewerId}:new`;
// Each tab has its own draft. The last one is also stored for new tabs and for the time after this tab is closed.
const readDraft = () => readTab(DRAFT_NAME) ?? readStored(DRAFT_NAME);
let draft = field.defaultValue || readDraft(); // as this tab has read or stored it last
const promptLists = document.querySelectorAll(".prompts[data-agent]");
const CHOICE_NAME = `parley:choice:${page.dataset.viewerId}`;

connectCommon();
renderedToasts.connect();
opener.connect();

form.addEventListener("submit", (event) => {
  event.preventDefault();
  if (form.ariaBusy === "true" || runIfCommand(field.value) || !checkLength(field.value) || !ensureUploaded()) return;
  const files = takeUploaded();
  if (field.value.trim() || files.length) createSession(files);
});

/** Shows whether the message is being sent. It cannot be changed then, because the change would be lost. */
function setBusy(isBusy) {
  form.ariaBusy = String(isBusy);
  field.readOnly = isBusy;
}

/** Sends the first message and opens its session. If that fails, text and files are kept. */
async function createSession(files) {
  setBusy(true);
  try {
    const { address } = await post(form.action, formValues(files), words.notBegun);
    if (readStored(DRAFT_NAME) === draft) writeStored(DRAFT_NAME, ""); // otherwise it is that of another tab
    writeTab(DRAFT_NAME, null);
    writeTab(CHOICE_NAME, null);
    startOver(); // for the case that Back restores this page
    location.assign(address);
  } catch (error) {
    setBusy(false);
    restoreFiles(files);
    forgetSession(); // its files still have its id
    showNotice(error.message);
    field.focus();
  }
}

/**
 * Returns the values to send. They include the session that the first file has created, even if the file is removed.
 */
function formValues(files) {
  const values = new FormData(form);
  values.set("text", unescapeSlash(field.value));
  values.set("session", files[0]?.session ?? sessionOfFiles());
  for (const { id } of files) values.append("attachments", id);
  return values;
}

field.addEventListener("keydown", (event) => {
  if (handleCompletionKey(event)) event.stopPropagation();
  else if (isSendKey(event)) form.requestSubmit();
  else return;
  event.preventDefault();
});
field.addEventListener("input", () => {
  draft = field.value;
  writeStored(DRAFT_NAME, draft);
  writeTab(DRAFT_NAME, draft);
});
addEventListener("online", retryFailed);
addEventListener("pageshow", (event) => {
  if (!event.persisted) return;
  setBusy(false);
  setText(readDraft()); // the text has been sent
});

onAction("prompt", ({ value }) => {
  if (form.ariaBusy === "true") return;
  if (field.value.trim() || promptToComplete(value)) return suggestText(value);
  setText(value);
  form.requestSubmit();
});

/** Writes a choice into the form. For an agent, resets the model. Returns the command, because none is refused. */
function applyChoice(command) {
  // The page lacks the prompts of an agent that was created after it was loaded. The draft survives the reload.
  if (command.type === "set_agent" && ![...promptLists].some((list) => list.dataset.agent === command.agent)) {
    location.assign(`?${new URLSearchParams({ agent: command.agent })}`);
    return command;
  }
  if (command.type === "set_agent") [agent.value, model.value] = [command.agent, ""];
  else model.value = `${command.provider}/${command.model}`;
  writeTab(CHOICE_NAME, { agent: agent.value, model: model.value });
  showChoice();
  if (!TOUCH.matches) field.focus(); // on phones that would open the keyboard
  return command;
}

/** Restores the choice from before a sign-in or a reload, unless the address contains an agent. */
function restoreChoice() {
  const choice = readTab(CHOICE_NAME);
  const isKnown = [...promptLists].some((list) => list.dataset.agent === choice?.agent);
  if (isKnown && !new URLSearchParams(location.search).has("agent")) {
    [agent.value, model.value] = [choice.agent, choice.model];
  }
}

/** Shows the form's choice on the picker's button and in the picker, and the agent's opening prompts. */
function showChoice() {
  const button = document.getElementById("model");
  const { title, model: own } = [...promptLists].find((list) => list.dataset.agent === agent.value).dataset;
  for (const list of promptLists) list.hidden = list.dataset.agent !== agent.value;
  for (const name of button.querySelectorAll(".agent-now bdi")) name.textContent = title;
  const [, ...name] = model.value.split("/"); // a model's name may contain slashes
  button.querySelector(".model-now bdi").textContent = name.join("/") || own || words.defaultModel;
  const workspace = form.elements.workspace?.value ?? "";
  const chosen = new URLSearchParams({ agent: agent.value, model: model.value, workspace });
  button.dataset.address = `${button.dataset.address.split("?")[0]}?${chosen}`;
}

/** The source of completions for "@", which chooses the agent, because the home page has no other users to mention. */
const agentSource = {
  ...mentionSource,
  find: async (query) =>
    (await opener.fetchChoices("agent"))
      .filter(({ label, argument }) => `${label} ${argument}`.toLowerCase().includes(query))
      .map((choice) => ({ icon: "bot", ...choice })),
  accept({ command }, { from, to }) {
    insertText("", from, to);
    applyChoice(command);
    return true;
  },
};

/**
 * Shows recent sessions as the list shows them. Hides those that are not in the list any more, and in the list the
 * session of this page's files.
 */
function updateRecentSessions() {
  const createdRow = document.getElementById(`row-${sessionOfFiles()}`);
  if (createdRow) createdRow.hidden = true; // its first message is not sent yet
  if (showsArchive()) return;
  for (const link of document.querySelectorAll(".home-session")) {
    const row = document.getElementById(`row-${link.dataset.session}`);
    link.hidden = row === null || row === createdRow;
    if (!row) continue;
    link.querySelector(".home-name").textContent = row.querySelector(".session-title").textContent;
    const state = row.dataset.waiting === "yes" ? "waiting" : row.querySelector(".pulse") ? "working" : "";
    for (const each of link.querySelectorAll("[data-state]")) each.hidden = each.dataset.state !== state;
    link.querySelector("time").dateTime = row.querySelector("time").dateTime;
    localizeTimes(link);
  }
}

const TITLE = document.title;

/** Shows in the browser's tab how many sessions wait for the user or mention the user, as pages of sessions do. */
const countWaiting = () => showTabTitle(TITLE, rowsThatNeedUser().length);

initializeText(draft);
growWithText(field);
opener.connectPicker(applyChoice);
restoreChoice();
showChoice();
connectUploads();
connectDropping();
connectCompletion(commandSource, agentSource);
sessionList.connect(isListSocketConnected);
document.getElementById("session-list").addEventListener("parley:list-updated", updateRecentSessions);
document.addEventListener("parley:list-updated", countWaiting);
countWaiting();
connectListSocket();
shell.connect();
addAccountCommands();
localizeTimes(page);
if (!TOUCH.matches) field.focus();
