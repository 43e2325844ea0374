// The account menu: settings, theme, archived sessions, administration, sign-out.
import { itemsOf, offer, on } from "../ui/commands.js";
import { words } from "../ui/i18n.js";
import { go } from "../ui/leaving.js";
import { openMenu } from "../ui/popover.js";
import { keep } from "../ui/preferences.js";
import { toast } from "../ui/toast.js";
import { signOut } from "./sign_out.js";

const THEMES = [
  ["", "monitor", words.themeSystem],
  ["light", "sun", words.themeLight],
  ["dark", "moon", words.themeDark],
];
// The menu's commands below the themes, as far as the page offers them.
const GROUPS = [["archived", "import"], ["keys", "admin"], ["sign-out"]];
const root = document.documentElement;

const present = () => root.dataset.theme ?? "";

/** Shows a theme ("" is the system's) and stores it with the account. */
async function chooseTheme(theme) {
  document.dispatchEvent(new CustomEvent("parley:theme", { detail: theme }));
  const problem = await keep({ theme }, words.notDone);
  if (problem) toast(problem);
}

/** Offers the commands for the account. */
export function offerAccount() {
  const { settings, workspace, admin } = document.getElementById("account").dataset;
  offer({
    id: "settings",
    label: words.settings,
    icon: "settings",
    slash: "settings",
    run: () => go(settings),
  });
  if (workspace) offer({ id: "workspace", label: words.workspaceSettings, icon: "users", run: () => go(workspace) });
  for (const [value, icon, label] of THEMES) {
    offer({
      id: `theme-${value || "system"}`,
      label,
      icon,
      words: words.theme,
      can: () => present() !== value,
      run: () => chooseTheme(value),
    });
  }
  if (admin) offer({ id: "admin", label: words.admin, icon: "shield", run: () => go(admin) });
  offer({ id: "sign-out", label: words.signOut, icon: "log-out", run: signOut });
}

export function connect() {
  on("account", (button) => {
    const themes = THEMES.map(([value, icon, label]) => ({
      label,
      icon,
      checked: present() === value,
      run: () => chooseTheme(value),
    }));
    const [first, ...rest] = [["settings", "workspace"], ...GROUPS].map(itemsOf);
    openMenu(button, [first, themes, ...rest], { label: words.account });
  });
}
