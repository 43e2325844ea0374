// The Markdown, the details and the suggested edits of a message.
import { fetchText } from "../net/http.js";
import { onAction } from "../ui/commands.js";
import { createElement, parseHtml } from "../ui/dom.js";
import { words } from "../ui/i18n.js";
import { clearNoticeAfterSuccess, showNotice } from "../ui/notice.js";
import { openPopover, positionPopover, unlessUserActed } from "../ui/popover.js";
import { localizeTimes } from "../ui/time.js";
import { showToast } from "../ui/toast.js";
import { fetchMarkdown } from "./actions.js";
import { tryRequest } from "./requests.js";
import { stopFollowing } from "./scroll.js";
import { live } from "./session.js";

// Details: author, model, time and tokens, in a box beside the message.

/** Shows the details of a message beside an element, which gets the focus when the box closes. */
export async function show(message, anchor) {
  const html = await unlessUserActed(fetchText(`${location.pathname}details?id=${message.id}`));
  if (html === undefined || !message.isConnected) return;
  if (html === null) return showNotice(words.notLoaded);
  // The toolbar, which contains the anchor, may have moved to another message in the meantime.
  const box = openPopover(message.contains(anchor) ? anchor : message, {
    className: "details",
    label: words.actionDetails,
  });
  if (!box) return;
  clearNoticeAfterSuccess();
  box.append(parseHtml(html));
  localizeTimes(box);
  positionPopover();
  box.focus({ preventScroll: true });
}

const sourceOf = (message) => message.querySelector(":scope > .source");

/** Switches between the Markdown of a message and its rendered text. */
export async function toggleSource(message) {
  if (sourceOf(message)) return sourceOf(message).remove();
  const { revision } = message.dataset;
  const text = await fetchMarkdown(message);
  if (text === null) return showNotice(words.notLoaded);
  clearNoticeAfterSuccess();
  if (sourceOf(message)) return; // requested twice
  const properties = {
    className: "source",
    data: { own: "" },
    tabIndex: 0,
    dir: "auto",
    ariaLabel: words.actionSource,
    role: "group",
  };
  message.append(createElement("pre", properties, text));
  updateOnChange(message, sourceOf, updateSource);
  if (revision !== message.dataset.revision) updateSource(message); // the text may be older
}

async function updateSource(message) {
  const { revision } = message.dataset;
  const text = await fetchMarkdown(message);
  if (text === null) return showNotice(words.notLoaded);
  if (revision === message.dataset.revision) sourceOf(message)?.replaceChildren(text); // otherwise fetched again
}

const watched = new WeakMap(); // the updates of each message

/** Calls `update(message)` after each change of a message while `shownIn(message)` finds an element. */
function updateOnChange(message, shownIn, update) {
  const updates = watched.get(message) ?? new Set();
  if (updates.has(update)) return; // it has been shown before
  watched.set(message, updates.add(update));
  const watcher = new MutationObserver(() => shownIn(message) && update(message));
  watcher.observe(message, { attributeFilter: ["data-revision"] });
}

// Suggested edits are shown as differences below their message, where they can be accepted or dismissed.

const suggestionsOf = (message) => message.querySelector(":scope > .suggestions");

/** Shows a message's open suggestions, or hides them. */
export async function toggleSuggestions(button) {
  const message = button.closest("article.message");
  if (suggestionsOf(message)) return closeSuggestions(message);
  stopFollowing(); // otherwise the next message would scroll the suggestions away
  await drawSuggestions(message);
  updateOnChange(message, suggestionsOf, drawSuggestions);
  suggestionsOf(message)?.querySelector(".difference")?.focus({ preventScroll: true });
  suggestionsOf(message)?.querySelector(".suggestion").scrollIntoView({ block: "nearest" });
}

async function drawSuggestions(message) {
  const { revision } = message.dataset;
  const before = suggestionsOf(message);
  const html = await fetchText(`${location.pathname}suggestions?id=${message.id}`);
  if (html === null) return showNotice(words.notLoaded);
  if (before && !suggestionsOf(message)) return; // the user has closed them
  if (revision !== message.dataset.revision) return drawSuggestions(message); // the response may be older
  clearNoticeAfterSuccess();
  const box = parseHtml(html).querySelector(".suggestions");
  localizeTimes(box);
  const hadFocus = suggestionsOf(message)?.contains(document.activeElement);
  suggestionsOf(message)?.remove();
  if (!box.querySelector(".suggestion")) return closeSuggestions(message, hadFocus);
  message.append(box);
  markOpen(message, true);
  if (hadFocus) box.querySelector(".difference").focus({ preventScroll: true });
}

function closeSuggestions(message, hadFocus = suggestionsOf(message)?.contains(document.activeElement)) {
  suggestionsOf(message)?.remove();
  markOpen(message, false);
  if (hadFocus) message.focus({ preventScroll: true });
}

function markOpen(message, isOpen) {
  message.querySelector("[data-action=suggestions]")?.setAttribute("aria-expanded", String(isOpen));
}

function suggestionHandler(type, done) {
  return (button) => {
    const revision = Number(button.closest(".suggestions").dataset.revision);
    const command =
      type === "accept_suggestion" ? { type, id: button.dataset.id, revision } : { type, id: button.dataset.id };
    return tryRequest(async () => {
      await live.request(command);
      showToast(done());
    });
  };
}

export function connect() {
  onAction(
    "accept-suggestion",
    suggestionHandler("accept_suggestion", () => words.suggestionAccepted),
  );
  onAction(
    "dismiss-suggestion",
    suggestionHandler("dismiss_suggestion", () => words.suggestionDismissed),
  );
}
