// Editing a message or a queued one in place, or suggesting an edit. Nothing typed is lost, and no other edit is
// overwritten unseen.
import { EDITS, textAt } from "../net/http.js";
import { keepInTab, keptInTab } from "../net/storage.js";
import * as clash from "../ui/conflict_form.js";
import { copyOf, parse } from "../ui/dom.js";
import { composing, fits, grow, restore, restoreTyped } from "../ui/field.js";
import { fill, words } from "../ui/i18n.js";
import { notice, say, settle } from "../ui/notice.js";
import { toast } from "../ui/toast.js";
import { actionsFor, askToRetry, forked, retry, sourceOf } from "./actions.js";
import { begin, draw, end } from "./editing.js";
import { insist } from "./insist.js";
import { lastMessage } from "./list.js";
import { keepPlace, leave } from "./scroll.js";
import { live, mayEdit } from "./session.js";

/** Resolves to the name of the other person who has deleted a message; "" if that is not known. */
async function deletedBy(id) {
  const removed = parse((await textAt(`${location.pathname}removed`)) ?? "");
  return removed.querySelector(`[data-id="${CSS.escape(id)}"]`)?.closest("[data-by]")?.dataset.by ?? "";
}

export { connect } from "./editing.js";

const isEdited = (message) => message.querySelector(":scope > .edit") !== null;

/** An open edit of a text: `before` and `revision` are those that the user has seen. */
class Edit {
  constructor(message, now, draft, template) {
    this.message = message;
    this.form = copyOf(template);
    this.field = this.form.querySelector("textarea");
    this.place = this.form.querySelector(".clash-place");
    Object.assign(this, draft ?? now);
    this.field.value = draft?.text ?? now.before;
    this.watcher = new MutationObserver(() => this.look());
    this.isOld = this.before !== now.before;
  }

  /** `quietly`: without the focus, and without scrolling. */
  open(watched, quietly) {
    const { message, form, field } = this;
    form.addEventListener("submit", (event) => this.submitted(event));
    form.addEventListener("click", ({ target }) => target.closest("[data-name=cancel]") && this.cancel());
    field.addEventListener("keydown", (event) => composing(event) || this.pressed(event));
    field.addEventListener("input", () => this.remember());
    this.watcher.observe(message, watched);
    message.append(form);
    if (this.isSuggestion) draw();
    else begin(message.id, form);
    grow(field);
    field.setSelectionRange(field.value.length, field.value.length);
    if (!quietly) field.focus();
    this.remember();
    if (this.isOld) this.clash(quietly);
  }

  /** Shows the saved text beside the edit. Resolves to it, or to null if nothing differs. */
  clash(quietly = false) {
    return clash.show({
      quietly,
      of: this.message.id,
      place: this.place,
      field: this.field,
      take: (present) => this.take(present),
      keep: (present) => this.#keep(present),
    });
  }

  #keep(present) {
    Object.assign(this, { before: present.current, revision: present.revision });
    clash.hide(this.place);
    this.remember();
    this.form.requestSubmit();
  }

  cancel() {
    const { value } = this.field;
    this.close();
    if (value !== this.before) this.offerBack(value);
  }

  /** Offers to go on with an edit. Returns a function that withdraws the offer. */
  offerBack(text) {
    const draft = this.draft(text);
    const run = () => this.resume(draft);
    return toast(words.editDiscarded, { action: { label: words.resumeEdit, run } });
  }

  draft(text) {
    return { text, before: this.before, revision: this.revision };
  }

  close() {
    this.watcher.disconnect();
    end(this.message.id);
    keepInTab(nameOf(this.message.id), null);
    settle(`edit:${this.message.id}`);
    const hadFocus = this.form.contains(document.activeElement);
    this.form.remove();
    if (hadFocus) this.way().focus({ preventScroll: true });
  }

  /** Stores an unsaved edit and the text that it started from, so that it survives a reload. */
  remember() {
    const { value } = this.field;
    keepInTab(nameOf(this.message.id), value === this.before ? null : this.draft(value));
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
    }
    for (const part of form.querySelectorAll("[data-for]"))
      part.hidden = !message.matches(part.dataset.for) || (this.isSuggestion && part.dataset.name === "again");
    if (!this.isSuggestion && message === lastMessage(".user") && message.matches(".mine")) this.#preferAnswer();
    message.addEventListener("gone", () => this.#rescue(), { once: true });
    message.querySelector(":scope > .source")?.remove();
    super.open({ attributeFilter: ["data-revision"] }, quietly);
  }

  /** The element that gets the focus when the form closes. */
  way() {
    return this.message;
  }

  resume(draft) {
    edit(this.message, draft);
  }

  /** Whether saving also asks for a new answer: the default for the user's own last message. */
  #preferAnswer() {
    const [again, save] = ["again", "save"].map((name) => this.form.querySelector(`[data-name=${name}]`));
    save.classList.remove("primary");
    again.classList.add("primary");
    save.after(again);
  }

  pressed(event) {
    event.stopPropagation();
    if (event.key === "Escape") this.cancel();
    else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      this.form.requestSubmit();
    }
  }

  async submitted(event) {
    event.preventDefault();
    const how = event.submitter?.dataset.name ?? "save";
    const { value } = this.field;
    if (!value.trim() || !fits(value)) return;
    if (how === "fork") return this.#fork(value);
    if (clash.isOpen(this.place)) return clash.point(this.place);
    const atMost = how === "again" ? await this.#askToRetry(event.submitter) : 0;
    if (atMost === null) return;
    if (atMost === "fork") return this.#fork(value);
    const edited = value !== this.before;
    if (edited && !(await this.#save(value, event.submitter))) return;
    if (this.form.isConnected && this.field.value !== value) return this.remember(); // the user has typed on
    this.close();
    if (how === "again") await retry(this.message, insist, atMost, edited);
  }

  /** Asks before saving, if messages would be removed: resolves to their number, "fork", or null to cancel. */
  #askToRetry(submitter) {
    const redo = async () => this.form.requestSubmit(submitter);
    return insist(() => askToRetry(this.message.id), {
      label: words.stopAndRetry,
      redo,
      about: `edit:${this.message.id}`,
    });
  }

  async #fork(text) {
    await insist(async () => {
      const url = await forked({ id: this.message.id, text, run: true });
      this.close();
      location.assign(url);
    });
  }

  /** Saves; resolves to whether that worked. If another person has changed the message, shows both texts. */
  async #save(text, submitter) {
    this.saving = true;
    const type = this.isSuggestion ? "suggest_edit" : "edit";
    const command = { type, id: this.message.id, text, revision: Number(this.revision) };
    const redo = async () => this.form.requestSubmit(submitter);
    const about = `edit:${this.message.id}`;
    const done = await insist(() => live.request(command).catch((refusal) => this.#stale(refusal)), {
      label: words.stopAndSave,
      redo,
      about,
    });
    this.saving = false;
    if (done && this.isSuggestion) toast(words.suggestionSent);
    else if (done) Object.assign(this, { before: text, revision: done.revision });
    return done !== null;
  }

  async #stale(refusal) {
    if (refusal.code !== "stale") throw refusal;
    if (!(await this.clash()) && this.form.isConnected) notice(refusal.message, { about: `edit:${this.message.id}` });
    return null;
  }

  async clash(quietly = false) {
    if (!quietly) leave(); // following the end of the list would scroll the choice away
    return super.clash(quietly);
  }

  /** Takes the message's present text; offers to restore the edit. */
  take(present) {
    const { value } = this.field;
    Object.assign(this, { before: present.current, revision: present.revision });
    this.close();
    if (value !== present.current) this.offerBack(value);
  }

  /** Handles a change by another person: an untouched edit takes the new text. */
  async look() {
    const { revision } = this.message.dataset;
    const now = await sourceOf(this.message);
    if (now === null || !this.form.isConnected || this.saving || now === this.before) return;
    if (this.field.value !== this.before) return this.clash();
    Object.assign(this, { before: now, revision });
    this.field.value = now;
    say(words.promptChanged);
  }

  /** Called before the message leaves the list: the edit goes to the composer, and so does what is typed next. */
  async #rescue() {
    if (!this.form.isConnected) return;
    this.watcher.disconnect();
    const text = this.field.value === this.before ? "" : this.field.value;
    if (this.form.contains(document.activeElement)) restoreTyped(text);
    else if (text) restore(text);
    if (!text) return;
    keepInTab(nameOf(this.message.id), null);
    const name = await deletedBy(this.message.id);
    notice(name ? fill(words.editRescuedBy, { name }) : words.editRescued, { about: "send" });
  }
}

/** An edit of a queued message, whose text is on the page. */
class QueuedEdit extends Edit {
  constructor(message, draft) {
    super(message, { before: queuedText(message), revision: message.dataset.revision }, draft, "edit-queued");
  }

  open(quietly = false) {
    this.form.dataset.own = "";
    super.open({ attributeFilter: ["data-revision"] }, quietly);
    this.message.classList.add("editing");
  }

  way() {
    return this.message.querySelector("[data-action=edit-queued]");
  }

  resume(draft) {
    editQueued(this.message, draft);
  }

  pressed(event) {
    if (event.key === "Escape") {
      event.stopPropagation();
      this.cancel();
    } else if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      this.form.requestSubmit();
    }
  }

  async submitted(event) {
    event.preventDefault();
    const { value } = this.field;
    if (clash.isOpen(this.place)) return clash.point(this.place);
    if (!value.trim() || value === this.before) return this.close();
    if (!fits(value)) return;
    this.saving = value;
    try {
      const command = { type: "edit_queued", id: this.message.id, text: value, revision: Number(this.revision) };
      const { revision } = await live.request(command);
      Object.assign(this, { before: value, revision });
    } catch (refusal) {
      return refusal.code === "stale" ? this.clash() : notice(refusal.message, { about: `edit:${this.message.id}` });
    } finally {
      this.saving = null;
    }
    if (!this.form.isConnected) return;
    if (this.field.value === value) this.close();
    else this.remember(); // the user has typed on
  }

  take() {
    this.close();
  }

  /** Checks whether the message has been changed elsewhere. */
  look() {
    if (!this.form.isConnected) this.watcher.disconnect();
    else if (![this.before, this.saving].includes(queuedText(this.message))) this.clash();
  }

  close() {
    if (!this.form.isConnected) return;
    this.message.classList.remove("editing");
    super.close();
  }

  /** Withdraws the offer when the message is removed or delivered. */
  offerBack(text) {
    const withdraw = super.offerBack(text);
    const watcher = new MutationObserver(() => {
      if (this.message.isConnected) return;
      watcher.disconnect();
      withdraw();
    });
    watcher.observe(document.getElementById("queue"), { childList: true });
  }
}

/** Opens the edit form of a message; `draft` is an unsaved edit and the text that it started from. */
export async function edit(message, draft = keptInTab(nameOf(message.id)), quietly = false) {
  if (isEdited(message)) return;
  const { revision } = message.dataset; // the text may be newer than this revision, never older
  const before = await sourceOf(message);
  if (before === null) return notice(words.notLoaded);
  if (!message.isConnected || isEdited(message)) return; // requested twice
  const form = new MessageEdit(message, { before, revision }, draft);
  if (quietly) keepPlace(() => form.open(true));
  else form.open();
}

/** Opens the unsaved edits of these messages, unless the user may no longer edit them. Resolves when they are open. */
export async function reopen(messages) {
  const opening = messages.map((message) => {
    const draft = keptInTab(nameOf(message.id));
    const button = message.querySelector("[data-action=edit-queued]");
    if (button?.checkVisibility()) new QueuedEdit(message, draft).open(true);
    else if (actionsFor(message).some(({ name }) => name === "edit")) return edit(message, draft, true);
    return null;
  });
  await Promise.all(opening);
}

/** Opens the edit form of a queued message. */
export function editQueued(message, draft = keptInTab(nameOf(message.id))) {
  if (!message.querySelector("form")) new QueuedEdit(message, draft).open();
}

const queuedText = (message) => message.querySelector(".queued-text").textContent;
const nameOf = (id) => `${EDITS}${id}`;
