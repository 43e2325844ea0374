// Editing a message in place, or suggesting an edit. Nothing typed is lost, and no other edit is overwritten unseen.
import { keepInTab, keptInTab } from "../net/storage.js";
import * as clash from "../ui/conflict_form.js";
import { copyOf } from "../ui/dom.js";
import { composing, fits, grow, restore } from "../ui/field.js";
import { words } from "../ui/i18n.js";
import { notice, say, settle } from "../ui/notice.js";
import { toast } from "../ui/toast.js";
import { askToRetry, insist, retry, sourceOf } from "./actions.js";
import { lastMessage } from "./list.js";
import { leave } from "./scroll.js";
import { live, mayEdit } from "./session.js";

const isEdited = (message) => message.querySelector(":scope > .edit") !== null;

/** An open edit of a message: `before` and `revision` are those that the user has seen. */
class Edit {
  constructor(message, now, draft) {
    this.message = message;
    this.isSuggestion = !mayEdit(message);
    this.form = copyOf("edit-message");
    this.field = this.form.querySelector("textarea");
    this.place = this.form.querySelector(".clash-place");
    Object.assign(this, draft ?? now);
    this.field.value = draft?.text ?? now.before;
    this.watcher = new MutationObserver(() => this.#look());
    this.isOld = this.before !== now.before;
  }

  open() {
    const { message, form, field } = this;
    form.dataset.own = "";
    if (this.isSuggestion) {
      form.querySelector("[data-name=save]").textContent = words.suggestionSend;
      form.querySelector("label > span").textContent = words.actionSuggest;
    }
    for (const button of form.querySelectorAll("[data-for]"))
      button.hidden = !message.matches(button.dataset.for) || (this.isSuggestion && button.dataset.name === "again");
    if (!this.isSuggestion && message === lastMessage(".user") && message.matches(".mine")) this.#preferAnswer();
    form.addEventListener("submit", (event) => this.#submit(event));
    form.addEventListener("click", ({ target }) => target.closest("[data-name=cancel]") && this.#cancel());
    field.addEventListener("keydown", (event) => this.#keys(event));
    field.addEventListener("input", () => this.#remember());
    message.addEventListener("gone", () => this.#rescue(), { once: true });
    this.watcher.observe(message, { attributeFilter: ["data-revision"] });
    message.querySelector(":scope > .source")?.remove();
    message.append(form);
    grow(field);
    field.focus();
    field.setSelectionRange(field.value.length, field.value.length);
    if (this.isOld) this.#clash();
  }

  /** Whether saving also asks for a new answer: the default for the user's own last message. */
  #preferAnswer() {
    const [again, save] = ["again", "save"].map((name) => this.form.querySelector(`[data-name=${name}]`));
    save.classList.remove("primary");
    again.classList.add("primary");
    save.after(again);
  }

  #keys(event) {
    if (composing(event)) return;
    event.stopPropagation();
    if (event.key === "Escape") this.#cancel();
    else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      this.form.requestSubmit();
    }
  }

  async #submit(event) {
    event.preventDefault();
    const how = event.submitter?.dataset.name ?? "save";
    const { value } = this.field;
    if (!value.trim() || !fits(value)) return;
    if (how === "fork") return this.#fork(value);
    if (clash.isOpen(this.place)) return clash.point(this.place);
    const atMost = how === "again" ? await this.#askToRetry(event.submitter) : 0;
    if (atMost === null) return;
    if (atMost === "fork") return this.#fork(value);
    if (value !== this.before && !(await this.#save(value, event.submitter))) return;
    if (this.form.isConnected && this.field.value !== value) return this.#remember(); // the user has typed on
    this.#close();
    if (how === "again") await retry(this.message, insist, atMost);
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
      const { url } = await live.request({ type: "fork", id: this.message.id, text, run: true });
      this.#close();
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
    if (!(await this.#clash()) && this.form.isConnected) notice(refusal.message, { about: `edit:${this.message.id}` });
    return null;
  }

  /** Shows the message's present text beside the edit. */
  async #clash() {
    const choices = { take: (present) => this.#take(present), keep: (present) => this.#keep(present) };
    const present = await clash.show({ of: this.message.id, place: this.place, field: this.field, ...choices });
    if (!present) return null;
    leave(); // following the end of the list would scroll the field away
    this.field.scrollIntoView({ block: "nearest" });
    return present;
  }

  /** Takes the message's present text; offers to restore the edit. */
  #take(present) {
    const { value } = this.field;
    Object.assign(this, { before: present.current, revision: present.revision });
    this.#close();
    if (value !== present.current) this.#offerBack(value);
  }

  #keep(present) {
    Object.assign(this, { before: present.current, revision: present.revision });
    clash.hide(this.place);
    this.#remember();
    this.form.requestSubmit();
  }

  /** Handles a change by another person: an untouched edit takes the new text. */
  async #look() {
    const { revision } = this.message.dataset;
    const now = await sourceOf(this.message);
    if (now === null || !this.form.isConnected || this.saving || now === this.before) return;
    if (this.field.value !== this.before) return this.#clash();
    Object.assign(this, { before: now, revision });
    this.field.value = now;
    say(words.promptChanged);
  }

  #cancel() {
    const { value } = this.field;
    this.#close();
    if (value !== this.before) this.#offerBack(value);
  }

  #offerBack(text) {
    const draft = this.#draft(text);
    toast(words.editDiscarded, { action: { label: words.resumeEdit, run: () => edit(this.message, draft) } });
  }

  #draft(text) {
    return { text, before: this.before, revision: this.revision };
  }

  #close() {
    this.watcher.disconnect();
    keepInTab(nameOf(this.message.id), null);
    settle(`edit:${this.message.id}`);
    const hadFocus = this.form.contains(document.activeElement);
    this.form.remove();
    if (hadFocus) this.message.focus({ preventScroll: true });
  }

  /** Called before the message leaves the list: the edit goes to the composer. */
  #rescue() {
    if (!this.form.isConnected) return;
    this.watcher.disconnect();
    if (this.field.value === this.before) return;
    restore(this.field.value);
    notice(words.editRescued, { about: "send" });
  }

  /** Stores an unsaved edit and the text that it started from, so that it survives a reload. */
  #remember() {
    const { value } = this.field;
    keepInTab(nameOf(this.message.id), value === this.before ? null : this.#draft(value));
  }
}

/** Opens the edit form of a message; `draft` is an unsaved edit and the text that it started from. */
export async function edit(message, draft = keptInTab(nameOf(message.id))) {
  if (isEdited(message)) return;
  const { revision } = message.dataset; // the text may be newer than this revision, never older
  const before = await sourceOf(message);
  if (before === null) return notice(words.notLoaded);
  if (!message.isConnected || isEdited(message)) return; // requested twice
  new Edit(message, { before, revision }, draft).open();
}

const nameOf = (id) => `parley:edit:${id}`;
