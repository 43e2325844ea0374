// Changing one's own queued message until it is delivered (RUN-06).
import { fits } from "./limit.js";

const sent = new WeakMap(); // what each form has sent and not heard of yet

/** Opens a field with the message's text in its place; what becomes of it goes out by `ask`. */
export function edit(message, ask) {
  if (message.querySelector("form")) return;
  const form = document.getElementById("edit-queued").content.firstElementChild.cloneNode(true);
  const field = form.querySelector("textarea");
  field.value = textOf(message);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    save(message, form, field.value, ask);
  });
  field.addEventListener("keydown", (event) => keys(event, form, message));
  message.append(form);
  field.focus();
}

export function cancelEdit(message) {
  const form = message.querySelector("form");
  const hadFocus = form.contains(document.activeElement);
  form.remove();
  if (hadFocus) message.querySelector("[data-action=edit-queued]").focus();
}

/** The server has the change: the field closes, unless somebody has gone on writing in it. */
export function saved(id) {
  const form = document.getElementById(id)?.querySelector("form");
  if (form && form.querySelector("textarea").value === sent.get(form)) cancelEdit(form.closest(".queued"));
}

/** What somebody was making of a message that is no longer queued; "" if nothing. */
export function unsaved(message) {
  const field = message?.querySelector("form textarea");
  return field && field.value !== textOf(message) ? field.value : "";
}

const textOf = (message) => message.querySelector(".queued-text").textContent;

function save(message, form, words, ask) {
  if (!words.trim() || words === textOf(message)) return cancelEdit(message);
  if (!fits(words)) return;
  sent.set(form, words); // the field stays until the server has it: what is refused must not be lost
  ask({ type: "edit_queued", id: message.id, text: words, ref: `edit:${message.id}` });
}

function keys(event, form, message) {
  if (event.isComposing || event.keyCode === 229) return;
  if (event.key === "Escape") cancelEdit(message);
  else if (event.key === "Enter" && !event.shiftKey) {
    event.preventDefault();
    form.requestSubmit();
  }
}
