// The session that this page shows, and the way to ask something of it.
import { Live } from "./live.js";
import { notice } from "./notice.js";

export const page = document.getElementById("main");
export const canEdit = page.dataset.canEdit === "yes";
// Guests of the workspace choose no model and make no sessions.
export const isGuest = page.dataset.guest === "yes";
export const live = new Live(location.origin.replace(/^http/, "ws") + page.dataset.socket, Number(page.dataset.revision));

/** Asks for a command; resolves to its ack, or to null after saying why it was refused. */
export async function ask(command) {
  try {
    return await live.request(command);
  } catch (refusal) {
    notice(refusal.message);
    return null;
  }
}
