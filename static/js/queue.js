// Changing one's own queued message until it is delivered (RUN-06).

/** Opens a field with the message's text in its place; what becomes of it goes out by `ask`. */
export function edit(message, ask) {
  if (message.querySelector("form")) return;
  const form = document.getElementById("edit-queued").content.firstElementChild.cloneNode(true);
  const field = form.querySelector("textarea");
  field.value = textOf(message);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    save(message, field.value, ask);
  });
  field.addEventListener("keydown", (event) => keys(event, form, message));
  message.append(form);
  field.focus();
}

export function cancelEdit(message) {
  message.querySelector("form")?.remove();
  message.querySelector("[data-action=edit-queued]")?.focus();
}

/** What somebody was making of a message that is no longer queued; "" if nothing. */
export function unsaved(message) {
  const field = message?.querySelector("form textarea");
  return field && field.value !== textOf(message) ? field.value : "";
}

const textOf = (message) => message.querySelector(".queued-text").textContent;

function save(message, words, ask) {
  const changed = words.trim() && words !== textOf(message);
  if (!changed || ask({ type: "edit_queued", id: message.id, text: words })) cancelEdit(message);
}

function keys(event, form, message) {
  if (event.isComposing || event.keyCode === 229) return;
  if (event.key === "Escape") cancelEdit(message);
  else if (event.key === "Enter" && !event.shiftKey) {
    event.preventDefault();
    form.requestSubmit();
  }
}
