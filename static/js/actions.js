// What people do with buttons: one listener for the whole page, by the button's data-action.
import { copyFor } from "./clipboard.js";
import { notice } from "./notice.js";
import { setPart } from "./parts.js";
import * as queue from "./queue.js";

const words = document.getElementById("words").dataset;

/** Begins to listen; what is asked for goes out over `live`. Returns the way to ask for more. No composer: a reader. */
export function start(live, composer) {
  const ask = (command) => {
    const sent = live.send({ ref: command.type, ...command });
    if (!sent) notice(words.reconnecting);
    return sent;
  };
  const actions = { ...local, ...remote(ask), prompt: (button) => composer.suggest(button.textContent) };
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("[data-action]");
    if (button) actions[button.dataset.action]?.(button);
  });
  return ask;
}

const local = {
  "copy-code": copyFor,
  copy: copyFor,
  dismiss: (button) => button.closest(".notice").remove(),
  expand(button) {
    button.previousElementSibling.dataset.expanded = "";
    button.remove();
  },
  "edit-cancel": (button) => queue.cancelEdit(button.closest(".queued")),
  "open-dialog": (button) => document.getElementById(button.dataset.dialog).showModal(),
};

const remote = (ask) => ({
  "edit-queued": (button) => queue.edit(button.closest(".queued"), ask),
  withdraw: (button) => ask({ type: "withdraw", id: button.closest(".queued").id }),
  retry: (button) => ask({ type: "retry", id: button.dataset.id }),
  stop() {
    if (ask({ type: "cancel" })) setPart("status", words.stopping);
  },
});
