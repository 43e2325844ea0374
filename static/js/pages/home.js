// The home page: its composer creates a session with a first message and files, and loses nothing on failure.
import { chosen, commanded, commandSource, connectCompletion, mentionSource, said } from "../composer/completion.js";
import {
  areThere,
  connectDropping,
  connectUploads,
  forgetSession,
  giveFilesBack,
  sessionOfFiles,
  take,
  tryAgain,
} from "../composer/uploads.js";
import * as opener from "../dialogs/opener.js";
import { post } from "../net/http.js";
import { listening, ring } from "../net/socket.js";
import { keep, keepInTab, kept, keptInTab } from "../net/storage.js";
import { offerAccount } from "../sidebar/account.js";
import { showsArchive } from "../sidebar/organise.js";
import * as rail from "../sidebar/session_list.js";
import { on, TOUCH } from "../ui/commands.js";
import { begin, field, fits, insert, sends, unfinished, write } from "../ui/field.js";
import { words } from "../ui/i18n.js";
import { notice } from "../ui/notice.js";
import * as shell from "../ui/shell.js";
import { localise } from "../ui/time.js";
import { connectCommon } from "./common.js";

const page = document.getElementById("main");
const form = document.getElementById("begin");
const [agent, model] = ["agent", "model"].map((name) => form.querySelector(`[name=${name}]`)); // elements.model is the button, too
const DRAFT = `parley:draft:${page.dataset.viewerId}:new`;
const lists = document.querySelectorAll(".prompts[data-agent]");
const CHOICE = `parley:choice:${page.dataset.viewerId}`;

connectCommon();
opener.connect();

form.addEventListener("submit", (event) => {
  event.preventDefault();
  if (form.ariaBusy === "true" || commanded(field.value) || !fits(field.value) || !areThere()) return;
  const files = take();
  if (field.value.trim() || files.length) send(files);
});

/** Sends the first message and opens its session; on failure, text and files stay. */
async function send(files) {
  form.ariaBusy = "true";
  try {
    const { address } = await post(form.action, message(files), words.notBegun);
    keep(DRAFT, "");
    keepInTab(CHOICE, null);
    location.assign(address);
  } catch (error) {
    form.ariaBusy = "false";
    giveFilesBack(files);
    forgetSession(); // its files still have its id
    notice(error.message);
    field.focus();
  }
}

/** Uses the session that the first file has created, even if that file was removed. */
function message(files) {
  const values = new FormData(form);
  values.set("text", said(field.value));
  values.set("session", files[0]?.session ?? sessionOfFiles());
  for (const { id } of files) values.append("attachments", id);
  return values;
}

field.addEventListener("keydown", (event) => {
  if (chosen(event)) event.stopPropagation();
  else if (sends(event)) form.requestSubmit();
  else return;
  event.preventDefault();
});
field.addEventListener("input", () => keep(DRAFT, field.value));
addEventListener("online", tryAgain);
addEventListener("pageshow", (event) => {
  if (!event.persisted) return;
  form.ariaBusy = "false";
  field.value = kept(DRAFT); // the text has been sent
});

on("prompt", (button) => {
  const open = unfinished(button.value);
  if (open) {
    insert(open.text, 0, field.value.length); // Ctrl+Z brings the text back
    return field.setSelectionRange(open.from, open.to);
  }
  write(button.value);
  form.requestSubmit();
});

/** Writes a choice into the form: an agent also sets its model. Nothing can be refused here. */
function choose(command) {
  // The page has no suggestions of an agent that was made since it was loaded. The draft stays.
  if (command.type === "set_agent" && ![...lists].some((list) => list.dataset.agent === command.agent)) {
    location.assign(`?${new URLSearchParams({ agent: command.agent })}`);
    return command;
  }
  if (command.type === "set_agent") [agent.value, model.value] = [command.agent, ""];
  else model.value = `${command.provider}/${command.model}`;
  keepInTab(CHOICE, { agent: agent.value, model: model.value });
  showChoice();
  if (!TOUCH.matches) field.focus(); // on a phone that would open the keyboard
  return command;
}

/** Returns to what was chosen before a sign-in or a reload, unless the address names an agent. */
function recallChoice() {
  const choice = keptInTab(CHOICE);
  const isKnown = [...lists].some((list) => list.dataset.agent === choice?.agent);
  if (isKnown && !new URLSearchParams(location.search).has("agent")) {
    [agent.value, model.value] = [choice.agent, choice.model];
  }
}

/** Shows the form's choice: on the picker's button, in the picker, and by the agent's suggestions. */
function showChoice() {
  const button = document.getElementById("model");
  const { title, model: own } = [...lists].find((list) => list.dataset.agent === agent.value).dataset;
  for (const list of lists) list.hidden = list.dataset.agent !== agent.value;
  for (const name of button.querySelectorAll(".agent-now bdi")) name.textContent = title;
  const [, ...name] = model.value.split("/"); // a model's name may contain slashes
  button.querySelector(".model-now bdi").textContent = name.join("/") || own || words.defaultModel;
  const workspace = form.elements.workspace?.value ?? "";
  const chosen = new URLSearchParams({ agent: agent.value, model: model.value, workspace });
  button.dataset.address = `${button.dataset.address.split("?")[0]}?${chosen}`;
}

/** At home there are no other people: "@" chooses the agent. */
const agentSource = {
  ...mentionSource,
  find: async (query) =>
    (await opener.choicesOf("agent"))
      .filter(({ label, argument }) => `${label} ${argument}`.toLowerCase().includes(query))
      .map((choice) => ({ icon: "bot", ...choice })),
  take({ command }, { from, to }) {
    insert("", from, to);
    choose(command);
    return true;
  },
};

/** Hides recent sessions that are no longer in the list, and the one that was created for the files of this page. */
function followList() {
  const begun = document.getElementById(`rail-${sessionOfFiles()}`);
  if (begun) begun.hidden = true; // its first message is not sent yet
  if (showsArchive()) return;
  for (const link of document.querySelectorAll(".home-session")) {
    const row = document.getElementById(`rail-${link.dataset.session}`);
    link.hidden = row === null || row === begun;
    if (row) link.querySelector(".home-name").textContent = row.querySelector(".rail-title").textContent;
  }
}

begin(field.defaultValue || kept(DRAFT));
opener.connectChoice(choose);
recallChoice();
showChoice();
connectUploads();
connectDropping();
connectCompletion(commandSource, agentSource);
rail.connect(listening);
document.getElementById("rail-list").addEventListener("parley:listed", followList);
ring();
shell.connect();
offerAccount();
localise(page);
if (!TOUCH.matches) field.focus();
