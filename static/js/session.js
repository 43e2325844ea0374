// The session page: puts its parts together.
import { start as startActions } from "./actions.js";
import { Composer } from "./composer.js";
import { Inbox } from "./inbox.js";
import { Live } from "./live.js";
import { adopt } from "./messages.js";
import { notice } from "./notice.js";
import { chooseModel, showIdleAgain, showThinking } from "./parts.js";
import * as queue from "./queue.js";
import { keepFresh } from "./refresh.js";
import * as scroll from "./scroll.js";
import * as shell from "./shell.js";
import { atMidnight, localise } from "./time.js";

const at = (id) => document.getElementById(id);
const page = at("main");
const words = at("words").dataset;
const model = at("model");

const inbox = new Inbox(() => live.sync(), overtaken);
const address = location.origin.replace(/^http/, "ws") + page.dataset.socket;
const live = new Live(address, Number(page.dataset.revision), () => inbox.have());
const composer = page.dataset.canEdit === "yes" ? new Composer(live, showThinking) : null;
const ask = startActions(live, composer);

live.addEventListener("frame", ({ detail }) => inbox.put(detail));
live.addEventListener("open", () => composer?.resend());
live.addEventListener("state", ({ detail: { state, reason } }) => {
  const line = at("connection");
  line.dataset.state = state;
  line.textContent = { "no-access": words.noAccess, gone: words.gone }[reason] ?? words[state] ?? "";
  if (state === "closed") composer?.close();
  if (reason === "signed-out") location.assign(`${page.dataset.signIn}?next=${encodeURIComponent(location.pathname)}`);
});
live.addEventListener("answer", ({ detail: answer }) => {
  const [kind, key] = String(answer.ref ?? "").split(":");
  if (answer.type === "refused") refused(kind, key, answer.message);
  else if (kind === "send") composer.confirmed(key, at(answer.id) !== null);
  else if (kind === "edit") queue.saved(key);
});
model?.addEventListener("change", () => {
  const option = model.selectedOptions[0];
  const sent = ask({ type: "set_model", provider: option.dataset.provider, model: option.value });
  if (!sent) chooseModel();
});

function refused(kind, key, message) {
  if (kind === "send") composer.refused(key);
  if (kind === "set_model") chooseModel();
  showIdleAgain();
  notice(message);
}

function overtaken(text) {
  composer?.restore(text);
  notice(words.delivered);
}

adopt([...at("messages").children]);
adopt([...at("queue").querySelectorAll(".queued[id]")]);
chooseModel();
scroll.start();
shell.start((title) => ask({ type: "rename", title }));
keepFresh(at("rail-list"));
atMidnight(() => localise(document.body));
if (composer?.restoreStale()) notice(words.kept);
live.connect();
