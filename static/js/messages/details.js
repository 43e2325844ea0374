// The Markdown, the details and the suggested edits of a message.
import { textAt } from "../net/http.js";
import { on } from "../ui/commands.js";
import { make, parse } from "../ui/dom.js";
import { words } from "../ui/i18n.js";
import { notice, settle } from "../ui/notice.js";
import { openBox, place, unlessOvertaken } from "../ui/popover.js";
import { localise } from "../ui/time.js";
import { toast } from "../ui/toast.js";
import { wholeOf } from "./actions.js";
import { insist } from "./insist.js";
import { leave } from "./scroll.js";
import { live } from "./session.js";

// Details: author, model, time and tokens, in a box beside the message.

/** Shows the details of a message beside an element, which gets the focus when they close. */
export async function show(message, anchor) {
  const html = await unlessOvertaken(textAt(`${location.pathname}details?id=${message.id}`));
  if (html === undefined || !message.isConnected) return;
  if (html === null) return notice(words.notLoaded);
  // The toolbar's button may belong to another message by now.
  const box = openBox(message.contains(anchor) ? anchor : message, {
    className: "details",
    label: words.actionDetails,
  });
  if (!box) return;
  settle();
  box.append(parse(html));
  localise(box);
  place();
  box.focus({ preventScroll: true });
}

/** Switches between the Markdown of a message and its rendered text. */
export async function toggleSource(message) {
  const shown = message.querySelector(":scope > .source");
  if (shown) return shown.remove();
  const text = await wholeOf(message);
  if (text === null) return notice(words.notLoaded);
  settle();
  if (message.querySelector(":scope > .source")) return; // requested twice
  const properties = {
    className: "source",
    data: { own: "" },
    tabIndex: 0,
    dir: "auto",
    ariaLabel: words.actionSource,
    role: "group",
  };
  message.append(make("pre", properties, text));
}

// Suggested edits: shown as differences below their message, accepted or dismissed there.

const boxOf = (message) => message.querySelector(":scope > .suggestions");

/** Shows a message's open suggestions, or hides them. */
export async function toggleSuggestions(button) {
  const message = button.closest("article.message");
  if (boxOf(message)) return close(message);
  leave(); // following the end of the list would scroll the suggestions away
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

/** Updates them when the message has changed. */
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
    const command =
      type === "accept_suggestion" ? { type, id: button.dataset.id, revision } : { type, id: button.dataset.id };
    return insist(async () => {
      await live.request(command);
      toast(done());
    });
  };
}

export function connect() {
  on(
    "accept-suggestion",
    decide("accept_suggestion", () => words.suggestionAccepted),
  );
  on(
    "dismiss-suggestion",
    decide("dismiss_suggestion", () => words.suggestionDismissed),
  );
}
