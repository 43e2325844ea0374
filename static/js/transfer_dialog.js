// A dialog that comes from the server when it is wanted, and goes when it is closed.
import { textAt } from "./server.js";
import { toast } from "./toast.js";
import { words } from "./words.js";

/** Opens what is at an address; resolves to the dialog, or to null when it did not come, or one is open already. */
export async function open(address) {
  const html = await textAt(address, { headers: { "HX-Request": "true" } });
  if (html === null) toast(words.notLoaded);
  if (html === null || document.querySelector("dialog:modal")) return null;
  const place = document.createElement("div");
  place.innerHTML = html; // our own template
  const dialog = place.firstElementChild;
  document.body.append(dialog);
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("click", ({ target }) => target === dialog && dialog.close());
  dialog.querySelector("[download]")?.closest(".dialog-body").addEventListener("click", ({ target }) => target.closest("[download]") && dialog.close());
  dialog.showModal();
  return dialog;
}
