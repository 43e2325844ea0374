// The form for an edit conflict. It shows how the texts differ and buttons to use either. The user can continue to type.
import { post } from "../net/http.js";
import { parseHtml } from "./dom.js";
import { words } from "./i18n.js";
import { localizeTimes } from "./time.js";

const UPDATE_DELAY_MS = 400;

/**
 * Shows in `place` the saved text that conflicts with the text in `field`. `of` is a message's id or "system_prompt".
 * `useSaved(present)` and `keepMine(present)` are called for the buttons. `present` is {current, revision}.
 * With `quietly`, the page does not scroll. Resolves to `present` when the form is shown, or to null if the texts do
 * not differ or the request failed.
 */
export async function showConflict({ of, place, field, useSaved, keepMine, quietly = false }) {
  const present = await fetchComparison(of, field.value);
  if (!present || !field.isConnected) return null;
  if (present.current === field.value) {
    useSaved(present);
    return null;
  }
  drawChoice(place, present, { useSaved, keepMine });
  if (!quietly) scrollToChoice(place, field);
  updateDifference(of, place, field);
  return present;
}

/** Returns whether a choice is open. */
export const isConflictOpen = (place) => place.firstElementChild !== null;

/** Moves the focus to the buttons. Saving again by a key then does not overwrite the other text unseen. */
export function focusChoice(place) {
  place.querySelector("[data-name=mine]").focus();
}

export const hideConflict = (place) => place.replaceChildren();

const fetchComparison = (of, mine) =>
  post(`${location.pathname}compare`, { id: of, mine }, words.notDone).catch(() => null);

function drawChoice(place, present, { useSaved, keepMine }) {
  const box = parseHtml(present.html).querySelector(".conflict");
  localizeTimes(box);
  box.querySelector("[data-name=theirs]").addEventListener("click", () => useSaved(present));
  box.querySelector("[data-name=mine]").addEventListener("click", () => keepMine(present));
  place.replaceChildren(box);
}

/** Scrolls the choice into view, below the field if there is room for both. The focus stays where it is. */
function scrollToChoice(place, field) {
  field.scrollIntoView({ block: "nearest" });
  place.firstElementChild.scrollIntoView({ block: "nearest" });
}

/** Updates the shown difference while the user types in the field. */
function updateDifference(of, place, field) {
  const box = place.firstElementChild;
  let due = 0;
  const write = () => {
    if (!box.isConnected) return field.removeEventListener("input", write);
    clearTimeout(due);
    due = setTimeout(async () => {
      const present = await fetchComparison(of, field.value);
      if (present && box.isConnected)
        box
          .querySelector(".difference")
          .replaceChildren(...parseHtml(present.html).querySelector(".difference").childNodes);
    }, UPDATE_DELAY_MS);
  };
  field.addEventListener("input", write);
}
