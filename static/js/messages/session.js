// The session that this page shows, and the way to ask something of it.
import { Live } from "../net/socket.js";
import { words } from "../ui/i18n.js";
import { notice, settle } from "../ui/notice.js";

export const page = document.getElementById("main");
export const canEdit = page.dataset.canEdit === "yes";
// Guests of the workspace choose no model and make no sessions.
export const isGuest = page.dataset.guest === "yes";
/** Whether this viewer may change a message: a person's is its author's and the owner's. */
export const mayEdit = (message) => canEdit && (page.dataset.role === "owner" || !message.matches(".user:not(.mine)"));
export const live = new Live(location.origin.replace(/^http/, "ws") + page.dataset.socket, Number(page.dataset.revision), { offline: words.notDone, lost: words.answerLost });

/** Asks for a command; resolves to its ack, or to null after saying why it was refused. */
export async function ask(command) {
  try {
    const answer = await live.request(command);
    settle(command.type);
    return answer;
  } catch (refusal) {
    notice(refusal.message, { about: command.type });
    return null;
  }
}
