// Forks the session: as a whole, or at a message.
import { readTab, writeTab } from "../net/storage.js";
import { addCommand } from "../ui/commands.js";
import { words } from "../ui/i18n.js";
import { showToast } from "../ui/toast.js";
import { isFinished, lastMessage, nextMessage } from "./list.js";
import { tryRequest } from "./requests.js";
import { isGuest, live } from "./session.js";

const FORK_NOTICE = "parley:forked"; // the notice about files for the fork that opens next in this tab
const FORK_TOAST_DELAY_MS = 700;
const FORK_TOAST_SECONDS = 30;

// The keys of this page's forks, by request. If an ack was lost, or the user presses twice, the server makes one fork.
let keys = {};

/** Forks the session and resolves to the address of the fork. The fork's page shows what happened to the files. */
export async function createFork(command) {
  let closeToast = () => {};
  const timer = setTimeout(
    () => (closeToast = showToast(words.forking, { seconds: FORK_TOAST_SECONDS })),
    FORK_TOAST_DELAY_MS,
  );
  const name = JSON.stringify(command);
  try {
    const key = (keys[name] ??= `${Math.random()}`);
    const { url, notice: aboutFiles } = await live.request({ type: "fork", key, ...command });
    writeTab(FORK_NOTICE, aboutFiles || null);
    return url;
  } catch (refusal) {
    if (refusal.code !== "key_taken") throw refusal;
    delete keys[name]; // the user has deleted the fork
    return createFork(command);
  } finally {
    clearTimeout(timer);
    closeToast();
  }
}

function showForkNotice() {
  const aboutFiles = readTab(FORK_NOTICE);
  if (!aboutFiles) return;
  writeTab(FORK_NOTICE, null);
  showToast(aboutFiles, { seconds: 8 });
}

export function forkAt({ id }) {
  return tryRequest(async () => location.assign(await createFork({ id })));
}

function lastFinished() {
  let message = lastMessage();
  while (message && !isFinished(message)) message = nextMessage(message, "previous");
  return message;
}

export function connect() {
  showForkNotice();
  addEventListener("pagehide", () => (keys = {})); // if Back restores the page, the user can fork again
  addCommand({
    id: "fork",
    label: words.forkSession,
    icon: "git-fork",
    slash: "fork",
    run: () => forkAt(lastFinished()),
    can: () => !isGuest && lastFinished() !== null,
  });
}
