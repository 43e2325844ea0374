// Shared by all pages with the session list.
import * as account from "../sidebar/account.js";
import * as signOut from "../sidebar/sign_out.js";
import * as clipboard from "../ui/clipboard.js";
import * as commands from "../ui/commands.js";
import * as faces from "../ui/faces.js";
import * as late from "../ui/late.js";
import * as notices from "../ui/notice.js";
import * as popover from "../ui/popover.js";
import * as preferences from "../ui/preferences.js";
import * as shortcuts from "../ui/shortcuts.js";
import * as toasts from "../ui/toast.js";

export function connectCommon() {
  late.connectAll(commands, faces, notices, popover, preferences, toasts, late, signOut, clipboard, account, shortcuts);
}
