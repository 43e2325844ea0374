// The clipboard. Over plain http there is no API for it: a shown text is selected and copied.
import { toast } from "./toast.js";

/** Copies text; where the page has no access to the clipboard, selects and copies the `shown` element instead. */
export async function copyText(text, shown) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return Boolean(shown) && copyBySelection(shown);
  }
}

/** Makes a button copy an element's text and show the result in words that the button has as data. */
export function connectCopying(button, shown, textOf) {
  history.replaceState(null, "", location.href); // this page is the answer to a form: a reload must not send the form again
  button.addEventListener("click", async () => {
    const copied = await copyText(textOf(), shown);
    toast(copied ? button.dataset.copied : button.dataset.notCopied);
  });
}

function copyBySelection(source) {
  if (source.select) source.select();
  else getSelection().selectAllChildren(source);
  return document.execCommand("copy");
}
