// The home page: its composer begins a session with what is written, and loses none of it.
import { offerAccount } from "./account.js";
import { on } from "./actions.js";
import { listening, ring } from "./doorbell.js";
import { begin, field, sends } from "./field.js";
import { TOUCH } from "./keyboard.js";
import { notice } from "./notice.js";
import * as rail from "./rail.js";
import { showsArchive } from "./refresh.js";
import * as search from "./search.js";
import { post } from "./server.js";
import * as shell from "./shell.js";
import "./shortcuts.js";
import { keep, kept } from "./store.js";
import { localise } from "./time.js";
import "./transfer.js";
import { words } from "./words.js";

const page = document.getElementById("main");
const form = document.getElementById("begin");
const agent = form.elements.agent;
const DRAFT = `parley:draft:${page.dataset.viewerId}:new`;

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  if (!field.value.trim() || form.ariaBusy === "true") return;
  form.ariaBusy = "true";
  try {
    const { address } = await post(form.action, new FormData(form), words.notBegun);
    keep(DRAFT, "");
    location.assign(address);
  } catch (error) {
    form.ariaBusy = "false";
    notice(error.message);
    field.focus();
  }
});
field.addEventListener("keydown", (event) => {
  if (!sends(event)) return;
  event.preventDefault();
  form.requestSubmit();
});
field.addEventListener("input", () => keep(DRAFT, field.value));
addEventListener("pageshow", (event) => {
  if (!event.persisted) return;
  form.ariaBusy = "false";
  field.value = kept(DRAFT); // what stood there has been sent
});

on("prompt", (button) => {
  field.value = button.textContent;
  keep(DRAFT, field.value);
  form.requestSubmit();
});
if (agent.options) agent.addEventListener("change", showAgent);

/** The suggestions, and the model that is meant by no choice, are the agent's. */
function showAgent() {
  for (const list of document.querySelectorAll(".home-prompts")) list.hidden = list.dataset.agent !== agent.value;
  document.getElementById("model-of-agent").textContent = agent.selectedOptions[0].dataset.model || words.defaultModel;
}

/** What the list no longer has is not offered here either; back in the list, it is back here. */
function followList() {
  if (showsArchive()) return;
  for (const link of document.querySelectorAll(".home-session")) {
    const row = document.getElementById(`rail-${link.dataset.session}`);
    link.hidden = row === null;
    if (row) link.querySelector(".home-name").textContent = row.querySelector(".rail-title").textContent;
  }
}

begin(field.defaultValue || kept(DRAFT));
rail.start(listening);
document.getElementById("rail-list").addEventListener("parley:listed", followList);
ring();
search.start();
shell.start();
offerAccount();
localise(page);
if (!TOUCH.matches) field.focus();
