// Numbers such as [1] in an answer that cite one of its sources: chips, with a card for the title and the address.
import { make } from "../ui/dom.js";
import { fill, words } from "../ui/i18n.js";

const SOON = 150;
const GAP = 6;
const MARGIN = 8;
const list = document.getElementById("messages");
let card = null; // the open card, with the chip that it belongs to
let due = 0;
let leaving = 0;

/** Returns the link to the source of a citation, undefined if its message has none with this number. */
function sourceOf(chip) {
  const number = chip.textContent.slice(1, -1);
  return chip.closest(".message")?.querySelector(`.sources > [data-number="${CSS.escape(number)}"] > a`) ?? undefined;
}

/** Makes chips of new citations. Only attributes are set: updates of the text find its elements as they were. */
function look() {
  due = 0;
  for (const chip of list.querySelectorAll(".prose .cite:not([role])")) {
    const source = sourceOf(chip);
    if (!source) continue;
    chip.role = "link";
    chip.tabIndex = 0;
    chip.ariaLabel = fill(words.source, { number: chip.textContent.slice(1, -1), title: titleOf(source) });
  }
  if (card && !card.chip.isConnected) hide();
}

const titleOf = (source) => source.querySelector(".source-title").textContent;
const chipAt = ({ target }) => target.closest?.(".cite[role]");

function show(chip) {
  clearTimeout(leaving);
  const source = sourceOf(chip);
  if (!source || card?.chip === chip) return;
  hide();
  const link = make("a", { href: source.href, target: "_blank", rel: source.rel, tabIndex: -1 });
  link.append(
    make("span", { className: "source-title", dir: "auto", textContent: titleOf(source) }),
    make("span", { className: "source-address", dir: "ltr", textContent: source.href }),
  );
  const element = make("div", { className: "source-card", popover: "manual" }, link);
  (chip.closest("main") ?? document.body).append(element);
  element.showPopover();
  card = { element, chip };
  place(element, chip.getBoundingClientRect());
}

function place(element, at) {
  const { offsetWidth: width, offsetHeight: height } = element;
  const below = at.bottom + GAP + height <= innerHeight - MARGIN;
  element.style.left = `${Math.max(MARGIN, Math.min(at.left, innerWidth - width - MARGIN))}px`;
  element.style.top = `${Math.max(MARGIN, below ? at.bottom + GAP : at.top - GAP - height)}px`;
}

function hide() {
  clearTimeout(leaving);
  card?.element.remove();
  card = null;
}

/** Waits a moment: the pointer may be on its way from the chip to the card. */
function hideSoon() {
  clearTimeout(leaving);
  leaving = setTimeout(hide, SOON);
}

function pointed(event) {
  const chip = chipAt(event);
  if (chip && event.pointerType !== "touch") show(chip);
  else if (card?.element.contains(event.target)) clearTimeout(leaving);
  else if (card && card.chip !== document.activeElement) hideSoon();
}

/** Opens the source; a touch shows its card first, whose link does that. */
function pressed(event) {
  const chip = chipAt(event);
  if (!chip) {
    if (card && !card.element.contains(event.target)) hide();
  } else if (event.pointerType === "touch") show(chip);
  else sourceOf(chip)?.click();
}

function typed(event) {
  const chip = chipAt(event);
  if (event.key === "Escape" && card) hide();
  else if (event.key === "Enter" && chip) sourceOf(chip)?.click();
  else return;
  event.preventDefault();
  event.stopPropagation();
}

export function connect() {
  look();
  new MutationObserver(() => (due ||= setTimeout(look, SOON))).observe(list, { childList: true, subtree: true });
  document.addEventListener("pointerover", pointed);
  document.addEventListener("click", pressed);
  document.addEventListener("keydown", typed, true);
  list.addEventListener("focusin", (event) => (chipAt(event) ? show(chipAt(event)) : hide()));
  list.addEventListener("focusout", (event) => chipAt(event) && hideSoon());
  document.getElementById("log").addEventListener("scroll", hide, { passive: true });
}
