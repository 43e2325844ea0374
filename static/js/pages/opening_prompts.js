// The icons below the opening prompts of an agent: each begins the caret's line with its name.

export function connect(icons, field) {
  if (!icons || !field) return;
  icons.hidden = false; // without scripts people write the names
  icons.addEventListener("click", ({ target }) => {
    const button = target.closest("button");
    if (button) put(field, button.value, icons.dataset.heading);
  });
}

/** Gives the caret's line an icon: in place of the present one, or before its text, with a heading to write over. */
function put(field, icon, heading) {
  const text = field.value;
  const start = text.slice(0, field.selectionStart).lastIndexOf("\n") + 1;
  const end = text.indexOf("\n", start);
  const line = text.slice(start, end < 0 ? undefined : end);
  const parts = line.split(" | ");
  if (parts.length > 2) return write(field, start, start + parts[0].length, icon);
  write(field, start, start, `${icon} | ${heading} | `);
  const from = start + icon.length + 3;
  field.setSelectionRange(from, from + heading.length);
}

/** Replaces a range as if the text had been typed, so that Ctrl+Z undoes it. */
function write(field, from, to, words) {
  field.focus();
  field.setSelectionRange(from, to);
  if (document.execCommand("insertText", false, words)) return;
  field.setRangeText(words, from, to, "end");
  field.dispatchEvent(new InputEvent("input", { bubbles: true }));
}
