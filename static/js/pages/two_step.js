// The pages of two-step verification: local times, toasts, and copying new recovery codes.
import { copyText } from "../ui/copy_text.js";
import { localise } from "../ui/time.js";
import * as toasts from "../ui/toast.js";

toasts.connect();
localise(document);

const list = document.getElementById("codes");
if (list) {
  history.replaceState(null, "", location.href); // reloading asks for the page: it sends no form, and makes no new codes
  const button = document.getElementById("copy-codes");
  button.addEventListener("click", async () => {
    const codes = [...list.children].map((item) => item.textContent).join("\n");
    const copied = await copyText(codes, list);
    toasts.toast(copied ? button.dataset.copied : button.dataset.notCopied);
  });
}
