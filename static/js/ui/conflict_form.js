// An edit conflict: both texts side by side, and a choice. The user can finish writing first.
import { post } from "../net/http.js";
import { parse } from "./dom.js";
import { words } from "./i18n.js";
import { localise } from "./time.js";

const PAUSE = 400;

/**
 * Shows, in `place`, the saved text that conflicts with the one in `field`. `of` is a message's id, or
 * "system_prompt". `take(present)` is called for "use the saved text", `keep(present)` for "use mine";
 * `present` is {current, revision}. `quietly`: without scrolling. Resolves to it once it is shown, or to null if nothing differs or the request failed.
 */
export async function show({ of, place, field, take, keep, quietly = false }) {
  const present = await compared(of, field.value);
  if (!present || !field.isConnected) return null;
  if (present.current === field.value) {
    take(present);
    return null;
  }
  draw(place, present, { take, keep });
  if (!quietly) bring(place, field);
  follow(of, place, field);
  return present;
}

/** Whether a choice is open. */
export const isOpen = (place) => place.firstElementChild !== null;

/** Moves the focus to the choice, so that a key that was meant for something else overwrites nothing. */
export function point(place) {
  place.querySelector("[data-name=mine]").focus();
}

export const hide = (place) => place.replaceChildren();

const compared = (of, mine) => post(`${location.pathname}compare`, { id: of, mine }, words.notDone).catch(() => null);

function draw(place, present, { take, keep }) {
  const box = parse(present.html).querySelector(".clash");
  localise(box);
  box.querySelector("[data-name=theirs]").addEventListener("click", () => take(present));
  box.querySelector("[data-name=mine]").addEventListener("click", () => keep(present));
  place.replaceChildren(box);
}

/** Scrolls the choice into view, below the field if there is room for both. The focus stays where it is. */
function bring(place, field) {
  field.scrollIntoView({ block: "nearest" });
  place.firstElementChild.scrollIntoView({ block: "nearest" });
}

/** Updates the difference to the field's present text. */
function follow(of, place, field) {
  const box = place.firstElementChild;
  let due = 0;
  const write = () => {
    if (!box.isConnected) return field.removeEventListener("input", write);
    clearTimeout(due);
    due = setTimeout(async () => {
      const present = await compared(of, field.value);
      if (present && box.isConnected)
        box
          .querySelector(".difference")
          .replaceChildren(...parse(present.html).querySelector(".difference").childNodes);
    }, PAUSE);
  };
  field.addEventListener("input", write);
}
