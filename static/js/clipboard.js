// Copying: code blocks and links, with a word on whether it worked.

const words = document.getElementById("words").dataset;

/** Copies the text that belongs to a button, and says so on the button for a moment. */
export async function copyFor(button) {
  const source = button.closest(".code")?.querySelector("code") ?? document.getElementById(button.dataset.source);
  const copied = await copy(source);
  button.dataset.label ??= button.textContent;
  button.textContent = copied ? words.copied : words.notCopied;
  setTimeout(() => (button.textContent = button.dataset.label), 2000);
}

async function copy(source) {
  const text = source.value ?? source.textContent;
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyBySelection(source); // plain http has no clipboard object
  }
}

function copyBySelection(source) {
  if (source.select) source.select();
  else getSelection().selectAllChildren(source);
  return document.execCommand("copy");
}
