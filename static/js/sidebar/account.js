// The account menu: settings, theme, archived sessions, administration, sign-out.
import { addCommand, menuItems, onAction } from "../ui/commands.js";
import { words } from "../ui/i18n.js";
import { navigate } from "../ui/navigation.js";
import { openMenu } from "../ui/popover.js";
import { savePreferences } from "../ui/preferences.js";
import { showToast } from "../ui/toast.js";
import { signOut } from "./sign_out.js";

const THEMES = [
  ["", "monitor", words.themeSystem],
  ["light", "sun", words.themeLight],
  ["dark", "moon", words.themeDark],
];
// The commands of the menu below the themes. Commands that the page does not offer are left out.
const GROUPS = [["archived", "import"], ["keys", "admin"], ["sign-out"]];
const root = document.documentElement;

const currentTheme = () => root.dataset.theme ?? "";

const showTheme = (theme) => document.dispatchEvent(new CustomEvent("parley:theme", { detail: theme }));

/** Shows a theme ("" for the system's) and stores it with the account. If that fails, shows the earlier one again. */
async function chooseTheme(theme) {
  const before = currentTheme();
  showTheme(theme);
  const problem = await savePreferences({ theme }, words.notDone);
  if (!problem) return;
  if (currentTheme() === theme) showTheme(before);
  showToast(problem);
}

/** Offers the commands for the account. */
export function addAccountCommands() {
  const { settings, workspace, admin } = document.getElementById("account").dataset;
  addCommand({
    id: "settings",
    label: words.settings,
    icon: "settings",
    slash: "settings",
    run: () => navigate(settings),
  });
  if (workspace)
    addCommand({ id: "workspace", label: words.workspaceSettings, icon: "users", run: () => navigate(workspace) });
  for (const [value, icon, label] of THEMES) {
    addCommand({
      id: `theme-${value || "system"}`,
      label,
      icon,
      keywords: words.theme,
      can: () => currentTheme() !== value,
      run: () => chooseTheme(value),
    });
  }
  if (admin) addCommand({ id: "admin", label: words.admin, icon: "shield", run: () => navigate(admin) });
  addCommand({ id: "sign-out", label: words.signOut, icon: "log-out", run: signOut });
}

export function connect() {
  onAction("account", (button) => {
    const themes = THEMES.map(([value, icon, label]) => ({
      label,
      icon,
      checked: currentTheme() === value,
      run: () => chooseTheme(value),
    }));
    const [first, ...rest] = [["settings", "workspace"], ...GROUPS].map(menuItems);
    openMenu(button, [first, themes, ...rest], { label: words.account });
  });
}
