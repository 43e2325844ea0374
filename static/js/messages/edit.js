// Editing a message in its place, or suggesting an edit of it; nothing that is typed there is lost, or written over unseen.
import { keepInTab, keptInTab } from "../net/storage.js";
import * as clash from "../ui/conflict_form.js";
import { copyOf } from "../ui/dom.js";
import { composing, fits, grow, restore } from "../ui/field.js";
import { words } from "../ui/i18n.js";
import { notice, say, settle } from "../ui/notice.js";
import { toast } from "../ui/toast.js";
import { sourceOf } from "./actions.js";
import { lastMessage } from "./list.js";
import { askToRetry, insist, retry } from "./retry.js";
import { leave } from "./scroll.js";
import { live, mayEdit } from "./session.js";

const isEdited = (message) => message.querySelector(":scope > .edit") !== null;

/** A message being changed: `before` and `revision` are what somebody has had before them. */
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

  /** One's own last message is mostly edited for another answer. */
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
    if (this.form.isConnected && this.field.value !== value) return this.#remember(); // somebody has gone on writing
    this.#close();
    if (how === "again") await retry(this.message, insist, atMost);
  }

  /** Asks what goes before anything is saved: how many messages may, "fork" for a fork instead, null for nothing. */
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

  /** Whether the change was taken; if somebody else has changed the message meanwhile, both texts are shown. */
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

  /** Shows what it says now beside what is being made of it. */
  async #clash() {
    const choices = { take: (present) => this.#take(present), keep: (present) => this.#keep(present) };
    const present = await clash.show({ of: this.message.id, place: this.place, field: this.field, ...choices });
    if (!present) return null;
    leave(); // who follows the end of the list would lose sight of the field
    this.field.scrollIntoView({ block: "nearest" });
    return present;
  }

  /** What it says now is what is wanted; what was written is offered back once more. */
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

  /** Somebody may have changed it: whoever has written nothing yet goes on from there. */
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

  /** The message is being taken out of the list: what was made of it goes to the composer. */
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

/** Opens a field with the message's text in its place; `draft` is what somebody has made of it before, and of what. */
export async function edit(message, draft = keptInTab(nameOf(message.id))) {
  if (isEdited(message)) return;
  const { revision } = message.dataset; // the text may be newer than that, never older
  const before = await sourceOf(message);
  if (before === null) return notice(words.notLoaded);
  if (!message.isConnected || isEdited(message)) return; // requested twice
  new Edit(message, { before, revision }, draft).open();
}

const nameOf = (id) => `parley:edit:${id}`;
