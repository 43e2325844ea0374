// What stands by one's own name: settings and the theme.
import { on } from "./actions.js";
import { offer } from "./deeds.js";
import { keep } from "./preferences.js";
import "./signing_out.js";
import { toast } from "./toast.js";
import { words } from "./words.js";

const NEXT = { "": "light", light: "dark", dark: "" };
const root = document.documentElement;

const present = () => root.dataset.theme ?? "";

/** Shows a theme ("" is the system's) and keeps it with the account. */
async function chooseTheme(theme) {
  document.dispatchEvent(new CustomEvent("parley:theme", { detail: theme }));
  const problem = await keep({ theme }, words.notDone);
  if (problem) toast(problem);
}

/** Offers what is about oneself and not about the session. */
export function offerAccount() {
  const address = document.getElementById("main").dataset.settings;
  offer({ id: "settings", label: words.settings, icon: "settings", slash: "settings", run: () => location.assign(address) });
  offerTheme("theme-system", "monitor", words.themeSystem, "");
  offerTheme("theme-light", "sun", words.themeLight, "light");
  offerTheme("theme-dark", "moon", words.themeDark, "dark");
}

function offerTheme(id, icon, label, value) {
  offer({ id, label, icon, words: words.theme, can: () => present() !== value, run: () => chooseTheme(value) });
}

on("theme", () => chooseTheme(NEXT[present()]));
