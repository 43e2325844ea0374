// A new API token: it is shown once, copied by one step, and not made again when the page is loaded again.
import { copyText } from "./copying.js";
import { toast } from "./toast.js";

const field = document.querySelector("input#token-answer");

if (field) {
  history.replaceState(null, "", location.href); // loading it again asks for the page, and sends no form
  field.select();
  const button = document.getElementById("copy-token");
  button.addEventListener("click", async () => {
    const copied = await copyText(field.value, field);
    toast(copied ? button.dataset.copied : button.dataset.notCopied);
  });
}
