// Messages on their way, shown above the composer until the server has them (LIVE-04).
const queue = document.getElementById("queue");

export const pendingOf = (key) => queue.querySelector(`[data-key="${CSS.escape(key)}"]`);

/** A message of this viewer has come, before the answer to the command that sent it: it is not shown twice. */
export function arrived(message) {
  const said = message.querySelector(".queued-text, .plain")?.textContent.trim();
  const isIt = (pending) => pending.querySelector(".queued-text").textContent.trim() === said;
  [...queue.querySelectorAll(".pending")].find(isIt)?.remove();
}

/** Shows an entry of the outbox, at once or after a while. */
export function showPending({ key, text, files = [] }, after = 0) {
  const element = document.getElementById("pending").content.firstElementChild.cloneNode(true);
  element.dataset.key = key;
  element.querySelector(".queued-text").textContent = text || files.map(({ name }) => name).join(", ");
  element.hidden = after > 0;
  queue.append(element);
  if (after) setTimeout(() => (element.hidden = false), after);
}
