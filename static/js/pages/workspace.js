// The settings of a workspace, and other pages with panels and forms.
import { ready } from "../ui/commands.js";
import { showSection } from "../ui/sections.js";
import { localise } from "../ui/time.js";
import * as toasts from "../ui/toast.js";

toasts.connect();
localise(document);
// Later, because the browser's jump to the address's #section at the end of loading takes the focus.
addEventListener("load", () => setTimeout(() => document.querySelector("[aria-invalid=true]")?.focus()));
showSection();
ready();
