// The session page: puts its parts together.
import { on } from "./actions.js";
import "./archived.js";
import "./clipboard.js";
import "./code.js";
import { Composer } from "./composer.js";
import "./connection.js";
import "./content.js";
import { renew } from "./days.js";
import * as deeplink from "./deeplink.js";
import * as diagrams from "./diagrams.js";
import { restore } from "./field.js";
import "./forking.js";
import "./header.js";
import "./images.js";
import { Inbox } from "./inbox.js";
import "./jump.js";
import { late } from "./late.js";
import { adopt } from "./messages.js";
import { notice, settle } from "./notice.js";
import "./notifications.js";
import { ask, canEdit, live, page } from "./page.js";
import "./panel_opener.js";
import { showIdleAgain, showThinking } from "./parts.js";
import "./pictures.js";
import * as presence from "./presence.js";
import * as reader from "./reader.js";
import { removed, unsaved } from "./queue.js";
import { retry } from "./retry.js";
import * as rail from "./rail.js";
import * as reading from "./reading.js";
import * as scroll from "./scroll.js";
import * as search from "./search.js";
import * as shell from "./shell.js";
import "./shortcuts.js";
import { keepInTab, keptInTab } from "./store.js";
import "./swaps.js";
import { atMidnight, localise } from "./time.js";
import { toast } from "./toast.js";
import * as toolbar from "./toolbar.js";
import "./transfer.js";
import { words } from "./words.js";

const at = (id) => document.getElementById(id);

const inbox = new Inbox({ missing: () => live.sync(), overtaken, queue: { removed, unsaved } });
const composer = canEdit ? new Composer(showThinking) : null;

live.have = () => inbox.have();
live.addEventListener("frame", ({ detail }) => inbox.put(detail));
live.addEventListener("open", () => composer?.resend());
live.addEventListener("state", ({ detail: { state } }) => state === "closed" && composer?.close());
live.addEventListener("answer", ({ detail: answer }) => {
  const [kind, key] = String(answer.ref ?? "").split(":");
  if (answer.type === "refused") refused(kind, key, answer.message);
  else if (kind === "send") {
    settle("send");
    composer.confirmed(key, at(answer.id) !== null);
  }
});

on("expand", (button) => {
  button.previousElementSibling.dataset.expanded = "";
  button.closest(".message").focus({ preventScroll: true });
  button.remove();
});
on("suggestions", async (button) => (await late(() => import("./suggestions.js")))?.toggle(button));
on("prompt", (button) => composer.suggest(button.textContent));
for (const action of ["retry", "continue"]) on(action, (button) => retry(button.dataset));

function refused(kind, key, message) {
  if (kind === "send") composer.refused(key);
  showIdleAgain();
  notice(message, { about: kind });
}

function overtaken(text) {
  restore(text);
  notice(words.delivered, { about: "send" });
}

/** A page whose viewer has got another role is loaded again; this says why. */
function tellRole() {
  const { session, role } = page.dataset;
  const before = keptInTab(`parley:role:${session}`);
  if (before && before !== role) toast({ owner: words.nowOwner, editor: words.nowEditor, viewer: words.nowViewer }[role]);
  keepInTab(`parley:role:${session}`, role);
}

adopt([...at("messages").children]);
tellRole();
adopt([...at("queue").querySelectorAll(".queued[id]")]);
scroll.start();
toolbar.start();
reader.start();
deeplink.start();
presence.start();
shell.start((title) => ask({ type: "rename", title }));
rail.start(() => live.state === "connected");
search.start();
reading.start();
diagrams.start();
addEventListener("beforeprint", () => renew(at("messages"), { whole: true }));
addEventListener("afterprint", () => renew(at("messages")));
atMidnight(() => {
  localise(document.body);
  renew(at("messages"));
});
if (composer?.restoreStale()) notice(words.kept, { about: "send" });
live.connect();
