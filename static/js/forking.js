// A copy of the whole session to go on with in another way; from a message its own menu does it.
import { offer } from "./deeds.js";
import { fork } from "./message_menu.js";
import { isOver, lastMessage, nextMessage } from "./messages.js";
import { isGuest } from "./page.js";
import { words } from "./words.js";

function last() {
  let message = lastMessage();
  while (message && !isOver(message)) message = nextMessage(message, "previous");
  return message;
}

offer({ id: "fork", label: words.forkSession, icon: "git-fork", slash: "fork", run: () => fork(last()), can: () => !isGuest && last() !== null });
