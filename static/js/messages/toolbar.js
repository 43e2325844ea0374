// Access to a message's actions: a toolbar on hover and focus, keys, and a long press on phones.
import { isBehind, offer, withControl } from "../ui/commands.js";
import { icon, make } from "../ui/dom.js";
import { words } from "../ui/i18n.js";
import { lateWithTyped } from "../ui/late.js";
import { whenHeld } from "../ui/popover.js";
import { fullTime } from "../ui/time.js";
import { act, actionsFor, copy, edit, openFor, retry } from "./actions.js";
import { canSwitch, switchTo } from "./attempts.js";
import { isOver, lastMessage, nextMessage } from "./list.js";
import { toEnd, toStart } from "./scroll.js";
import { canEdit, page } from "./session.js";

// Commands for the session as a whole: find, go to the end, copy or retry the last answer.

async function find(text = "") {
  const [panel, typed] = await lateWithTyped(() => import("./find.js"));
  panel?.open(text, typed);
}

function goToLast() {
  const message = lastMessage();
  message?.focus({ preventScroll: true });
  message?.scrollIntoView({ block: "nearest" });
}

/** Opens Parley's search, which covers the whole session; pressed again, the keys open the browser's. */
function pageKeys(event) {
  if (event.defaultPrevented || event.shiftKey || isBehind()) return;
  const isFind = event.key === "f" && withControl(event);
  const isUp = event.key === "ArrowUp" && event.altKey && !event.ctrlKey && !event.metaKey;
  if (isFind && event.target.closest?.(".find")) return;
  const isStart = event.key === "Home" && withControl(event) && !event.target.matches?.("input, textarea");
  if (isFind) find();
  else if (isUp) goToLast();
  else if (isStart) toStart();
  if (isFind || isUp || isStart) event.preventDefault();
}

function connectReader() {
  document.addEventListener("keydown", pageKeys);
  addEventListener("beforeprint", () => (document.querySelector(".top").dataset.printed = fullTime(new Date())));
  const mine = `.user[data-user-id="${page.dataset.viewerId}"]`;
  offer({
    id: "find",
    label: words.find,
    icon: "search",
    keys: "Ctrl+F",
    slash: "find",
    run: find,
    can: () => Boolean(lastMessage()),
  });
  offer({
    id: "first",
    label: words.firstGo,
    icon: "arrow-up",
    keys: "Ctrl+Home",
    slash: "first",
    run: toStart,
    can: () => Boolean(lastMessage()),
  });
  offer({
    id: "latest",
    label: words.latest,
    icon: "arrow-down",
    slash: "latest",
    run: toEnd,
    can: () => Boolean(lastMessage()),
  });
  offer({
    id: "go-last",
    label: words.lastGo,
    icon: "arrow-up",
    keys: "Alt+↑",
    run: goToLast,
    can: () => Boolean(lastMessage()),
  });
  offer({
    id: "copy-last",
    label: words.lastCopy,
    icon: "copy",
    slash: "copy",
    run: () => copy(lastMessage(".assistant")),
    can: () => Boolean(lastMessage(".assistant")),
  });
  offer({
    id: "print",
    label: words.print,
    icon: "printer",
    slash: "print",
    run: () => print(),
    can: () => Boolean(lastMessage()),
  });
  if (!canEdit) return;
  offer({
    id: "edit-last",
    label: words.lastEdit,
    icon: "pencil",
    slash: "edit",
    run: () => edit(lastMessage(mine)),
    can: () => Boolean(lastMessage(mine)),
  });
  offer({
    id: "retry-last",
    label: words.lastRetry,
    icon: "rotate-ccw",
    slash: "retry",
    run: () => retry(again()),
    can: () => Boolean(again()),
  });
}

/** Returns the last answer that can be retried. */
function again() {
  const message = lastMessage(":is(.assistant, .error)");
  return message && isOver(message) && page.dataset.status === "idle" ? message : null;
}

const LONG_PRESS = 450;
const BESIDE = 6; // px between the toolbar and buttons beside it
const FOCUSED = ":focus-visible, :has(:focus-visible)";
const QUICK = ["copy", "edit", "retry"];
const ITS_OWN = "a, button, input, textarea, select, summary, pre, img, video, [contenteditable]";
const log = document.getElementById("log");
const list = document.getElementById("messages");
const status = document.getElementById("status");
const hovering = draw("message-actions");
const resting = draw("message-actions resting");

/** Returns the message of an element. */
const messageOf = (element) => element.closest?.("#messages > article.message") ?? null;

function connectToolbar() {
  status.after(resting);
  list.addEventListener(
    "pointerover",
    (event) =>
      event.pointerType === "touch" || isHeld() || isFocused() || show(messageOf(event.target), { byPointer: true }),
  );
  list.addEventListener("pointermove", moved);
  list.addEventListener("pointerleave", () => isHeld() || isFocused() || hide());
  list.addEventListener(
    "focusin",
    ({ target }) =>
      hovering.contains(target) || show(messageOf(target), { byPointer: !target.matches(":focus-visible") }),
  );
  list.addEventListener(
    "focusout",
    (event) => messageOf(event.relatedTarget ?? list) || isHeld() || isFocused() || hide(),
  );
  log.addEventListener("scroll", () => hovering.isConnected && (due ||= requestAnimationFrame(stepAside)), {
    passive: true,
  });
  log.addEventListener("keydown", keys);
  list.addEventListener("pointerdown", press);
  list.addEventListener(
    "contextmenu",
    (event) => event.pointerType === "touch" && !event.target.closest("a") && event.preventDefault(),
  );
  new MutationObserver(rest).observe(list, { childList: true });
  new MutationObserver(rest).observe(page, { attributeFilter: ["data-status"] });
  rest();
}

function draw(name) {
  const bar = make("div", { className: name, data: { own: "" }, role: "group", ariaLabel: words.actions });
  bar.addEventListener("click", ({ target }) => pressed(bar, target.closest("button")));
  return bar;
}

function pressed(bar, button) {
  const message = messageOf(bar) ?? lastMessage();
  if (!button || !message) return;
  if (button.dataset.name === "more") openFor(message, button);
  else act(message, button.dataset.name === "answer" ? "retry" : button.dataset.name, button);
}

/** Fills a toolbar with the actions of a message. */
function dress(bar, message) {
  const possible = actionsFor(message).filter(({ name }) => QUICK.includes(name));
  const wanted = [
    ...possible.map((action) => [action.name, action.icon, action.label(message)]),
    ["more", "ellipsis", words.actionMore],
  ];
  // The last message is a person's and has no answer, as at the end of a fork.
  const again = bar === resting && message.matches(".user") ? wanted.find(([name]) => name === "retry") : null;
  again?.splice(0, 3, "answer", "play", words.answer);
  const names = wanted.map(([name]) => name);
  for (const button of [...bar.children]) if (!names.includes(button.dataset.name)) leave(button);
  let next = bar.firstElementChild;
  for (const each of wanted) {
    if (next?.dataset.name === each[0]) next = named(next, each).nextElementSibling;
    else bar.insertBefore(buttonOf(each), next);
  }
}

/** Removes a button; its focus moves to the last one, which always stays. */
function leave(button) {
  if (button === document.activeElement) button.parentElement.lastElementChild.focus();
  button.remove();
}

/** Gives a button the label of the present message: "Edit", or "Suggest an edit". */
function named(button, [, , label]) {
  if (button.title !== label) Object.assign(button, { title: label, ariaLabel: label });
  return button;
}

function buttonOf([name, image, label]) {
  const isAnswer = name === "answer";
  const className = isAnswer ? "button small" : "icon-button";
  const button = make(
    "button",
    { type: "button", className, data: { name }, title: label, ariaLabel: label },
    icon(image),
    isAnswer ? label : "",
  );
  if (name === "more") button.ariaHasPopup = "menu";
  return button;
}

function show(message, { byPointer = false } = {}) {
  if (byPointer && message === lastMessage() && isInSight(resting)) return hide(); // its toolbar is below it
  if (!message || hovering.parentElement === message || message.querySelector(":scope > .edit")) return;
  dress(hovering, message);
  hide();
  message.append(hovering);
  spare(message);
  stepAside();
}

// Buttons in the upper corner of an answer's content. Those of a long code block stay in view, as the toolbar does.
const IN_THE_CORNER = ":is(.code-head, .table) > button";
let due = 0;

/** Moves the toolbar beside buttons that it would cover. */
function stepAside() {
  due = 0;
  const message = messageOf(hovering);
  if (!message) return;
  hovering.style.translate = "";
  const bar = hovering.getBoundingClientRect();
  const isUnder = ({ width, left, right, top, bottom }) =>
    width && left < bar.right && right > bar.left && top < bar.bottom && bottom > bar.top;
  const covered = [...message.querySelectorAll(IN_THE_CORNER)].find((each) => isUnder(each.getBoundingClientRect()));
  if (!covered) return;
  const first = covered.parentElement.querySelector("button:not([hidden])").getBoundingClientRect();
  hovering.style.translate = `${Math.floor(first.left - bar.right - BESIDE)}px`;
}

/** Whether an open menu or popover belongs to the toolbar, which then stays. */
const isHeld = () => hovering.querySelector("[aria-expanded=true]") !== null;

/** Whether the toolbar has the keyboard's focus; it then stays until the pointer moves to another message. */
const isFocused = () => hovering.querySelector(":focus-visible") !== null;

/** Whether the pointer itself has moved, not only the content under it. */
function moved({ target, pointerType, movementX, movementY }) {
  if (pointerType === "touch" || !(movementX || movementY) || isHeld()) return;
  show(messageOf(target), { byPointer: true });
}

function isInSight(bar) {
  const { top, height } = bar.getBoundingClientRect(); // 0 while it is hidden
  return height > 0 && top < log.getBoundingClientRect().bottom - height;
}

function hide() {
  if (hovering.contains(document.activeElement)) document.activeElement.blur(); // hides the toolbar
  hovering.remove();
  spare(null);
}

/** Keeps the last message's actions in the tab order only once. */
function spare(message) {
  resting.classList.toggle("spare", message !== null && message === lastMessage() && message.matches(FOCUSED));
}

/** Shows the last message's actions below it, in the place of the agent's status. */
function rest() {
  const last = lastMessage();
  // The toolbar is hidden while the agent works; a focus in it moves to its message.
  if (page.dataset.status !== "idle" && resting.querySelector(":focus-visible")) last?.focus({ preventScroll: true });
  resting.hidden = !last;
  if (last) dress(resting, last);
  const hovered = messageOf(hovering);
  if (hovered === last && isInSight(resting) && !isHeld() && !last.matches(FOCUSED)) return hide();
  if (hovered) dress(hovering, hovered); // a finished message can be edited
  spare(hovered);
}

function keys(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  const message = event.target.matches("article.message") ? event.target : null;
  if (!message && event.target !== log) return;
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  // Letters that are typed with the focus on the list go into the composer.
  if (!message && /^[\p{L}\p{N}]$/u.test(event.key) && !"jk".includes(key))
    return document.getElementById("text")?.focus();
  const way = { j: "next", k: "previous", ArrowDown: "next", ArrowUp: "previous" }[key];
  if (way ? !move(message, way, key.length > 1) : !does(message, key)) return;
  event.preventDefault();
  event.stopPropagation();
}

/** Goes to the next message; arrows first scroll through a long one. */
function move(message, way, byArrow) {
  const edge = log.getBoundingClientRect();
  if (message && byArrow) {
    const { top, bottom } = message.getBoundingClientRect();
    if (way === "next" ? bottom > edge.bottom + 1 : top < edge.top - 1) return false;
  }
  const next = message ? nextMessage(message, way) : visible(edge);
  next?.focus({ preventScroll: true });
  next?.scrollIntoView({ block: "nearest" });
  return Boolean(next);
}

const visible = (edge) =>
  [...list.children].findLast(
    (each) => each.matches("article.message") && each.getBoundingClientRect().top < edge.bottom - 24,
  ) ?? null;

const SWITCHES = { ArrowLeft: -1, ArrowRight: 1 };

function switched(message, by) {
  const can = canSwitch(message, by);
  if (can) switchTo(message, by);
  return can;
}

function does(message, key) {
  if (!message) return false;
  if (key === "Escape") document.getElementById("text")?.focus();
  else if (key === "Enter" || key === "m") openFor(message, message);
  else if (key in SWITCHES) return switched(message, SWITCHES[key]);
  else return act(message, key);
  return true;
}

/** Opens the menu on a long press, except on elements with their own. */
function press(event) {
  const message = messageOf(event.target);
  if (
    event.pointerType !== "touch" ||
    !message ||
    event.target.closest(ITS_OWN) ||
    message.hasAttribute("data-selectable")
  )
    return;
  whenHeld(event, LONG_PRESS, () => {
    navigator.vibrate?.(10);
    openFor(message, message, { byPress: true });
  });
}

export function connect() {
  connectReader();
  connectToolbar();
}
