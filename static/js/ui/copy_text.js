// The clipboard itself: over plain http there is none, and what is shown is copied by being selected.
import { toast } from "./toast.js";

/** Puts text on the clipboard; where a page may not, the `shown` element is selected and copied instead. */
export async function copyText(text, shown) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return Boolean(shown) && copyBySelection(shown);
  }
}

/** Lets a button copy what an element shows, and say whether that worked in the words that the button has for it. */
export function connectCopying(button, shown, textOf) {
  history.replaceState(null, "", location.href); // what is shown once came by a form: loading the page again sends none
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
