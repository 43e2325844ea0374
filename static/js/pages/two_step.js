// The pages of two-step verification: local times, toasts, and copying new recovery codes.
import { connectCopying } from "../ui/copy_text.js";
import { localise } from "../ui/time.js";
import * as toasts from "../ui/toast.js";

toasts.connect();
localise(document);

const list = document.getElementById("codes");
if (list)
  connectCopying(document.getElementById("copy-codes"), list, () =>
    [...list.children].map((item) => item.textContent).join("\n"),
  );
