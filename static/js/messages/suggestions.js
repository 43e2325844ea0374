// Suggested edits of a message: shown below it as what they would change, accepted or dismissed there.
import { textAt } from "../net/http.js";
import { on } from "../ui/commands.js";
import { words } from "../ui/i18n.js";
import { notice, settle } from "../ui/notice.js";
import { parse } from "../ui/dom.js";
import { localise } from "../ui/time.js";
import { toast } from "../ui/toast.js";
import { insist } from "./retry.js";
import { leave } from "./scroll.js";
import { live } from "./session.js";

const boxOf = (message) => message.querySelector(":scope > .suggestions");

/** Shows a message's open suggestions, or hides them. */
export async function toggle(button) {
  const message = button.closest("article.message");
  if (boxOf(message)) return close(message);
  leave(); // following the end of the list would move the suggestions out of sight
  await draw(message);
  follow(message);
  boxOf(message)?.querySelector(".difference")?.focus({ preventScroll: true });
  boxOf(message)?.querySelector(".suggestion").scrollIntoView({ block: "nearest" });
}

async function draw(message) {
  const html = await textAt(`${location.pathname}suggestions?id=${message.id}`);
  if (html === null) return notice(words.notLoaded);
  settle();
  const box = parse(html).querySelector(".suggestions");
  localise(box);
  const hadFocus = boxOf(message)?.contains(document.activeElement);
  boxOf(message)?.remove();
  if (!box.querySelector(".suggestion")) return close(message, hadFocus);
  message.append(box);
  mark(message, true);
  if (hadFocus) box.querySelector(".difference").focus({ preventScroll: true });
}

/** Draws them again whenever the message has changed. */
function follow(message) {
  const watcher = new MutationObserver(() => (boxOf(message) ? draw(message) : watcher.disconnect()));
  watcher.observe(message, { attributeFilter: ["data-revision"] });
}

function close(message, hadFocus = boxOf(message)?.contains(document.activeElement)) {
  boxOf(message)?.remove();
  mark(message, false);
  if (hadFocus) message.focus({ preventScroll: true });
}

function mark(message, isOpen) {
  message.querySelector("[data-action=suggestions]")?.setAttribute("aria-expanded", String(isOpen));
}

function decide(type, done) {
  return (button) => {
    const revision = Number(button.closest(".suggestions").dataset.revision);
    const command = type === "accept_suggestion" ? { type, id: button.dataset.id, revision } : { type, id: button.dataset.id };
    return insist(async () => {
      await live.request(command);
      toast(done());
    });
  };
}

export function connect() {
  on("accept-suggestion", decide("accept_suggestion", () => words.suggestionAccepted));
  on("dismiss-suggestion", decide("dismiss_suggestion", () => words.suggestionDismissed));
}
