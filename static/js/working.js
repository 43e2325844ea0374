// While the agent works: Stop, and what the composer says about it (RUN-07, UI-09).
import { on } from "./actions.js";
import { offer } from "./deeds.js";
import { composing, field } from "./field.js";
import { TOUCH } from "./keyboard.js";
import { say } from "./notice.js";
import { ask, page } from "./page.js";
import { isIdle, setPart, showIdleAgain } from "./parts.js";
import { fill, words } from "./words.js";

/** Asks the agent to stop. Harmless to repeat. */
async function stop() {
  if (isIdle()) return;
  setPart("status", words.stopping);
  say(words.stopping);
  if (!(await ask({ type: "cancel" }))) showIdleAgain();
}

export function start() {
  on("stop", () => {
    if (!TOUCH.matches) field.focus(); // the button is about to be disabled, and would lose the focus
    stop();
  });
  offer({
    id: "stop", label: words.stopTheAgent, icon: "circle-stop", keys: "Esc", slash: "stop", run: stop, can: () => !isIdle(),
  });
  new MutationObserver(tell).observe(page, { attributeFilter: ["data-status", "data-agent"] });
  tell();
}

/** Escape in an empty field stops: with words in it, it is about them. */
export function stopped(event) {
  if (event.key !== "Escape" || composing(event) || field.value || isIdle()) return false;
  stop();
  return true;
}

function tell() {
  field.placeholder = isIdle() ? fill(field.dataset.idle, { name: page.dataset.agent }) : field.dataset.working;
}
