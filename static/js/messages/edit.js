// Editing a message or a queued message in place, or suggesting an edit. Typed text is never lost. If another user has
// changed the text in the meantime, the user sees both before one is overwritten.
import { EDIT_PREFIX, fetchText } from "../net/http.js";
import { readTab, writeTab } from "../net/storage.js";
import * as conflict from "../ui/conflict_form.js";
import { cloneTemplate, parseHtml } from "../ui/dom.js";
import { checkLength, growWithText, isComposing, restoreText, restoreTextAndFocus } from "../ui/field.js";
import { format, words } from "../ui/i18n.js";
import { announce, clearNoticeAfterSuccess, showNotice } from "../ui/notice.js";
import { watchUser } from "../ui/popover.js";
import { showToast } from "../ui/toast.js";
import { actionsFor, fetchSource } from "./actions.js";
import { drawEditors, startEditing, stopEditing } from "./editors.js";
import { createFork } from "./fork.js";
import { lastMessage } from "./list.js";
import { tryRequest } from "./requests.js";
import { confirmRetry, retry } from "./retry.js";
import { keepScrollPosition, stopFollowing } from "./scroll.js";
import { live, mayEdit } from "./session.js";

/** Resolves to the name of the other user who has removed a message, or to "" if it is not known. */
async function fetchRemover(id) {
  const removed = parseHtml((await fetchText(`${location.pathname}removed`)) ?? "");
  return removed.querySelector(`[data-id="${CSS.escape(id)}"]`)?.closest("[data-by]")?.dataset.by ?? "";
}

export { connect } from "./editors.js";

/** An open edit. `before` and `revision` are the text and the revision from which the user started. */
class Edit {
  constructor(message, now, draft, template) {
    this.message = message;
    this.form = cloneTemplate(template);
    this.field = this.form.querySelector("textarea");
    this.place = this.form.querySelector(".conflict-place");
    Object.assign(this, draft ?? now);
    this.field.value = draft?.text ?? now.before;
    this.watcher = new MutationObserver(() => this.handleChange());
    this.isOld = this.before !== now.before;
  }

  /** Opens the form and follows changes of the message. With `quietly`, neither moves the focus nor scrolls. */
  open(watched, quietly) {
    const { message, form, field } = this;
    form.addEventListener("submit", (event) => this.handleSubmit(event));
    form.addEventListener("click", ({ target }) => target.closest("[data-name=cancel]") && this.cancel());
    field.addEventListener("keydown", (event) => isComposing(event) || this.handleKey(event));
    field.addEventListener("input", () => this.storeDraft());
    this.watcher.observe(message, watched);
    message.append(form);
    if (this.isSuggestion) drawEditors();
    else startEditing(message.id, form);
    growWithText(field);
    field.setSelectionRange(field.value.length, field.value.length);
    if (!quietly) field.focus();
    this.storeDraft();
    if (this.isOld) this.showConflict(quietly);
  }

  /** Shows the saved text beside the edit. Resolves to {current, revision}, or to null if the texts do not differ. */
  showConflict(quietly = false) {
    return conflict.showConflict({
      quietly,
      of: this.message.id,
      place: this.place,
      field: this.field,
      useSaved: (present) => this.useSaved(present),
      keepMine: (present) => this.#keepMine(present),
    });
  }

  #keepMine(present) {
    Object.assign(this, { before: present.current, revision: present.revision });
    conflict.hideConflict(this.place);
    this.storeDraft();
    this.form.requestSubmit();
  }

  cancel() {
    const { value } = this.field;
    this.close();
    if (value !== this.before) this.offerToResume(value);
  }

  /** Shows a toast that offers to continue an edit. Returns a function that removes it. */
  offerToResume(text) {
    const draft = this.draft(text);
    const run = () => this.resume(draft);
    return showToast(words.editDiscarded, { action: { label: words.resumeEdit, run } });
  }

  draft(text) {
    return { text, before: this.before, revision: this.revision };
  }

  close() {
    this.watcher.disconnect();
    stopEditing(this.message.id);
    writeTab(draftName(this.message.id), null);
    clearNoticeAfterSuccess(`edit:${this.message.id}`);
    const hadFocus = this.form.contains(document.activeElement);
    this.form.remove();
    if (hadFocus) this.focusTarget().focus({ preventScroll: true });
  }

  /** Stores an unsaved edit and its original text, so that the edit survives a reload. */
  storeDraft() {
    const { value } = this.field;
    writeTab(draftName(this.message.id), value === this.before ? null : this.draft(value));
  }
}

/** An edit of a message in the list, or a suggested one. */
class MessageEdit extends Edit {
  constructor(message, now, draft) {
    super(message, now, draft, "edit-message");
    this.isSuggestion = !mayEdit(message);
  }

  open(quietly = false) {
    const { message, form } = this;
    form.dataset.own = "";
    if (this.isSuggestion) {
      form.querySelector("[data-name=save]").textContent = words.suggestionSend;
      form.querySelector("label > span").textContent = words.actionSuggest;
      form.querySelector("[data-name=keys]").textContent = words.editKeysSuggest;
    }
    for (const part of form.querySelectorAll("[data-for]"))
      part.hidden = !message.matches(part.dataset.for) || (this.isSuggestion && part.dataset.name === "again");
    if (!this.isSuggestion && message === lastMessage(".user") && message.matches(".mine")) this.#preferAnswer();
    message.addEventListener("gone", () => this.#moveToComposer(), { once: true });
    message.querySelector(":scope > .source")?.remove();
    super.open({ attributeFilter: ["data-revision"] }, quietly);
  }

  /** Returns the element that gets the focus when the form closes. */
  focusTarget() {
    return this.message;
  }

  resume(draft) {
    edit(this.message, { draft });
  }

  /** Makes "save and answer again" the main button, which Ctrl+Enter presses. Used for the user's own last message. */
  #preferAnswer() {
    const [again, save] = ["again", "save"].map((name) => this.form.querySelector(`[data-name=${name}]`));
    save.classList.remove("primary");
    again.classList.add("primary");
    save.after(again);
    this.form.querySelector("[data-name=keys]").textContent = words.editKeysAgain;
  }

  handleKey(event) {
    event.stopPropagation();
    if (event.key === "Escape") this.cancel();
    else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      this.form.requestSubmit(this.form.querySelector(".primary"));
    }
  }

  async handleSubmit(event) {
    event.preventDefault();
    const button = event.submitter?.dataset.name ?? "save";
    const { value } = this.field;
    if (!value.trim() || !checkLength(value)) return;
    if (button === "fork") return this.#fork(value);
    if (conflict.isConflictOpen(this.place)) return conflict.focusChoice(this.place);
    const choice = button === "again" ? await this.#askToRetry(event.submitter) : 0;
    if (choice === null) return;
    if (choice === "fork") return this.#fork(value);
    const edited = value !== this.before;
    if (edited && !(await this.#save(value, event.submitter))) return;
    if (this.form.isConnected && this.field.value !== value) return this.storeDraft(); // the user has continued to type
    this.close();
    if (button === "again") await retry(this.message, tryRequest, choice, edited);
  }

  /** Asks before saving if messages would be removed. Resolves to their number, "fork", or null if cancelled. */
  #askToRetry(submitter) {
    const redo = async () => this.form.requestSubmit(submitter);
    return tryRequest(() => confirmRetry(this.message.id), {
      label: words.stopAndRetry,
      redo,
      about: `edit:${this.message.id}`,
    });
  }

  async #fork(text) {
    await tryRequest(async () => {
      const url = await createFork({ id: this.message.id, text, run: true });
      this.close();
      location.assign(url);
    });
  }

  /** Saves and resolves to whether it worked. If another user has changed the message, shows both texts. */
  async #save(text, submitter) {
    this.saving = true;
    const type = this.isSuggestion ? "suggest_edit" : "edit";
    const command = { type, id: this.message.id, text, revision: Number(this.revision) };
    const redo = async () => this.form.requestSubmit(submitter);
    const about = `edit:${this.message.id}`;
    const done = await tryRequest(() => live.request(command).catch((refusal) => this.#handleStale(refusal)), {
      label: words.stopAndSave,
      redo,
      about,
    });
    this.saving = false;
    if (done && this.isSuggestion) showToast(words.suggestionSent);
    else if (done) Object.assign(this, { before: text, revision: done.revision });
    return done !== null;
  }

  async #handleStale(refusal) {
    if (refusal.code !== "stale") throw refusal;
    if (!(await this.showConflict()) && this.form.isConnected)
      showNotice(refusal.message, { about: `edit:${this.message.id}` });
    return null;
  }

  async showConflict(quietly = false) {
    if (!quietly) stopFollowing(); // otherwise new messages would scroll the choice away
    return super.showConflict(quietly);
  }

  /** Closes the edit, because the user prefers the saved text, and offers to continue it. */
  useSaved(present) {
    const { value } = this.field;
    Object.assign(this, { before: present.current, revision: present.revision });
    this.close();
    if (value !== present.current) this.offerToResume(value);
  }

  /** Handles a change by another user: shows the conflict, or the new text if this user has not typed yet. */
  async handleChange() {
    const { revision } = this.message.dataset;
    const now = await fetchSource(this.message);
    if (revision !== this.message.dataset.revision) return; // fetched again
    if (now === null || !this.form.isConnected || this.saving || now === this.before) return;
    if (this.field.value !== this.before) return this.showConflict();
    Object.assign(this, { before: now, revision });
    this.field.value = now;
    announce(words.promptChanged);
  }

  /** Moves the edit to the composer, and with it the focus. Called before the message leaves the list. */
  async #moveToComposer() {
    if (!this.form.isConnected) return;
    this.watcher.disconnect();
    const text = this.field.value === this.before ? "" : this.field.value;
    if (this.form.contains(document.activeElement)) restoreTextAndFocus(text);
    else if (text) restoreText(text);
    if (!text) return;
    writeTab(draftName(this.message.id), null);
    const name = await fetchRemover(this.message.id);
    showNotice(name ? format(words.editRescuedBy, { name }) : words.editRescued, { about: "send" });
  }
}

/** An edit of a queued message, whose text is on the page. */
class QueuedEdit extends Edit {
  constructor(message, draft) {
    super(message, { before: queuedText(message), revision: message.dataset.revision }, draft, "edit-queued");
  }

  open(quietly = false) {
    this.form.dataset.own = "";
    // frames.js and queue.js offer the unsaved text of a message that has left the queue.
    this.message.addEventListener("gone", () => writeTab(draftName(this.message.id), null), { once: true });
    super.open({ attributeFilter: ["data-revision"] }, quietly);
    this.message.classList.add("editing");
  }

  focusTarget() {
    return this.message.querySelector("[data-action=edit-queued]");
  }

  resume(draft) {
    editQueued(this.message, draft);
  }

  handleKey(event) {
    if (event.key === "Escape") {
      event.stopPropagation();
      this.cancel();
    } else if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      this.form.requestSubmit();
    }
  }

  async handleSubmit(event) {
    event.preventDefault();
    const { value } = this.field;
    if (conflict.isConflictOpen(this.place)) return conflict.focusChoice(this.place);
    if (!value.trim() || value === this.before) return this.close();
    if (!checkLength(value)) return;
    this.saving = value;
    try {
      const command = { type: "edit_queued", id: this.message.id, text: value, revision: Number(this.revision) };
      const { revision } = await live.request(command);
      Object.assign(this, { before: value, revision });
    } catch (refusal) {
      return refusal.code === "stale"
        ? this.showConflict()
        : showNotice(refusal.message, { about: `edit:${this.message.id}` });
    } finally {
      this.saving = null;
    }
    if (!this.form.isConnected) return;
    if (this.field.value === value) this.close();
    else this.storeDraft(); // the user has continued to type
  }

  useSaved() {
    this.close();
  }

  /** Shows the conflict if the message has been changed elsewhere. */
  handleChange() {
    if (!this.form.isConnected) this.watcher.disconnect();
    else if (![this.before, this.saving].includes(queuedText(this.message))) this.showConflict();
  }

  close() {
    if (!this.form.isConnected) return;
    this.message.classList.remove("editing");
    super.close();
  }

  /** Also removes the toast when the message is removed or delivered, because it can no longer be edited then. */
  offerToResume(text) {
    const withdraw = super.offerToResume(text);
    const watcher = new MutationObserver(() => {
      if (this.message.isConnected) return;
      watcher.disconnect();
      withdraw();
    });
    watcher.observe(document.getElementById("queue"), { childList: true });
  }
}

/**
 * Opens the edit form of a message, or moves the focus to the open form. `draft` is an unsaved edit with its original
 * text. If `isQuiet` returns true when the form opens, for example because the user has acted in the meantime, neither
 * moves the focus nor scrolls.
 */
export async function edit(message, { draft = readTab(draftName(message.id)), isQuiet = watchUser() } = {}) {
  if (focusOpenEdit(message, isQuiet)) return;
  const { revision } = message.dataset; // read before the text, which then is at least as new
  const before = await fetchSource(message);
  if (before === null) return showNotice(words.notLoaded);
  if (!message.isConnected || focusOpenEdit(message, isQuiet)) return; // requested twice
  const form = new MessageEdit(message, { before, revision }, draft);
  if (isQuiet()) keepScrollPosition(() => form.open(true));
  else form.open();
}

/** Returns whether the edit form of a message is open. Moves the focus there, unless `isQuiet` returns true. */
function focusOpenEdit(message, isQuiet) {
  const field = message.querySelector(":scope > .edit textarea");
  if (field && !isQuiet()) field.focus();
  return field !== null;
}

/** Opens the unsaved edits of these messages, except those that the user may no longer edit. Resolves when done. */
export async function reopen(messages) {
  const opening = messages.map((message) => {
    const draft = readTab(draftName(message.id));
    const button = message.querySelector("[data-action=edit-queued]");
    if (button?.checkVisibility()) new QueuedEdit(message, draft).open(true);
    else if (actionsFor(message).some(({ name }) => name === "edit"))
      return edit(message, { draft, isQuiet: () => true });
    return null;
  });
  await Promise.all(opening);
}

/** Opens the edit form of a queued message. */
export function editQueued(message, draft = readTab(draftName(message.id))) {
  if (!message.querySelector("form")) new QueuedEdit(message, draft).open();
}

const queuedText = (message) => message.querySelector(".queued-text").textContent;
const draftName = (id) => `${EDIT_PREFIX}${id}`;
