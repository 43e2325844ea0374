// The clipboard itself: over plain http there is none, and what is shown is copied by being selected.

/** Puts text on the clipboard; where a page may not, the `shown` element is selected and copied instead. */
export async function copyText(text, shown) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return Boolean(shown) && copyBySelection(shown);
  }
}

function copyBySelection(source) {
  if (source.select) source.select();
  else getSelection().selectAllChildren(source);
  return document.execCommand("copy");
}
