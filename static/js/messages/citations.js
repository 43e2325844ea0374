// Citations: numbers such as [1] in an answer become chips, with a card that shows the source's title and address. This
// module is loaded with the first citation.
import { createElement } from "../ui/dom.js";
import { format, words } from "../ui/i18n.js";

const DELAY_MS = 150;
const GAP = 6;
const MARGIN = 8;
const list = document.getElementById("messages");
let card = null; // the open card, with the chip that it belongs to
let markTimer = 0;
let hideTimer = 0;
let unmarked = null; // the chip that had the focus when a patch removed its attributes

// A chip has its brackets, or is one of several numbers in brackets.
const numberOf = (chip) => /\d+/.exec(chip.textContent)[0];

/** Returns the link to the source of a citation, or undefined if its message has no source with this number. */
function sourceOf(chip) {
  return chip.closest(".message")?.querySelector(`.sources > [data-number="${numberOf(chip)}"] > a`) ?? undefined;
}

/** Makes chips of new citations. Sets only attributes, because patches of the text compare its elements. */
function markCitations() {
  clearTimeout(markTimer);
  markTimer = 0;
  for (const chip of list.querySelectorAll(".prose .cite:not([role])")) {
    const source = sourceOf(chip);
    if (!source) continue;
    chip.role = "link";
    chip.tabIndex = 0;
    chip.ariaLabel = format(words.source, { number: numberOf(chip), title: titleOf(source) });
  }
  if (card && !card.chip.isConnected) hideCard();
  if (unmarked?.role && document.activeElement === document.body) unmarked.focus({ preventScroll: true });
  unmarked = null;
}

/** Marks citations soon, or before the next frame if a patch has removed the attributes of a chip. */
function handleChanges(records) {
  if (records.some(({ type, target }) => type === "attributes" && !target.role)) markCitations();
  else markTimer ||= setTimeout(markCitations, DELAY_MS);
}

const titleOf = (source) => source.querySelector(".source-title").textContent;
const chipOf = ({ target }) => target.closest?.(".cite[role]");

function showCard(chip) {
  clearTimeout(hideTimer);
  const source = sourceOf(chip);
  if (!source || card?.chip === chip) return;
  hideCard();
  const link = createElement("a", { href: source.href, target: "_blank", rel: source.rel, tabIndex: -1 });
  link.append(
    createElement("span", { className: "source-title", dir: "auto", textContent: titleOf(source) }),
    createElement("span", { className: "source-address", dir: "ltr", textContent: source.href }),
  );
  const element = createElement("div", { className: "source-card", popover: "manual" }, link);
  (chip.closest("main") ?? document.body).append(element);
  element.showPopover();
  card = { element, chip };
  positionCard(element, chip.getBoundingClientRect());
}

function positionCard(element, at) {
  const { offsetWidth: width, offsetHeight: height } = element;
  const below = at.bottom + GAP + height <= innerHeight - MARGIN;
  element.style.left = `${Math.max(MARGIN, Math.min(at.left, innerWidth - width - MARGIN))}px`;
  element.style.top = `${Math.max(MARGIN, below ? at.bottom + GAP : at.top - GAP - height)}px`;
}

function hideCard() {
  clearTimeout(hideTimer);
  card?.element.remove();
  card = null;
}

/** Hides the card after a moment, because the pointer may be moving from the chip to the card. */
function hideCardSoon() {
  clearTimeout(hideTimer);
  hideTimer = setTimeout(hideCard, DELAY_MS);
}

let isTouch = false; // whether the last press was a touch

function handlePointer(event) {
  const chip = chipOf(event);
  if (chip && event.pointerType !== "touch") showCard(chip);
  else if (card?.element.contains(event.target)) clearTimeout(hideTimer);
  else if (card && card.chip !== document.activeElement) hideCardSoon();
}

/** Opens the source of a pressed chip. A touch only shows the card, which has a link to the source. */
function handleClick(event) {
  const chip = chipOf(event);
  if (!chip) {
    if (card && !card.element.contains(event.target)) hideCard();
  } else if (isTouch && event.detail) showCard(chip);
  else sourceOf(chip)?.click();
}

function handleKey(event) {
  const chip = chipOf(event);
  if (event.key === "Escape" && card) hideCard();
  else if (event.key === "Enter" && chip) sourceOf(chip)?.click();
  else return;
  event.preventDefault();
  event.stopPropagation();
}

export function connect() {
  markCitations();
  new MutationObserver(handleChanges).observe(list, { childList: true, subtree: true, attributeFilter: ["role"] });
  document.addEventListener("pointerover", handlePointer);
  // Safari before 18.4 does not give clicks the type of the pointer.
  document.addEventListener("pointerdown", ({ pointerType }) => (isTouch = pointerType === "touch"), true);
  document.addEventListener("click", handleClick);
  document.addEventListener("keydown", handleKey, true);
  list.addEventListener("focusin", (event) => (chipOf(event) ? showCard(chipOf(event)) : hideCard()));
  list.addEventListener("focusout", (event) => {
    if (event.target.matches(".cite:not([tabindex])")) unmarked = event.target;
    else if (chipOf(event)) hideCardSoon();
  });
  document.getElementById("log").addEventListener("scroll", hideCard, { passive: true });
}
