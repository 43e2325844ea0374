// How users reach the actions on messages: a toolbar on hover and focus, keys, and a long press on phones.
import { addCommand, hasControl, isDialogOpen, movesCaret } from "../ui/commands.js";
import { createElement, createIcon } from "../ui/dom.js";
import { words } from "../ui/i18n.js";
import { lazyImportWithTyped } from "../ui/loading.js";
import { onLongPress } from "../ui/popover.js";
import { formatFull } from "../ui/time.js";
import { actionsFor, copyMessage, editMessage, openMenuFor, runAction } from "./actions.js";
import { canSwitchAttempt, switchAttempt } from "./attempts.js";
import { isFinished, lastMessage, nextMessage } from "./list.js";
import { retry } from "./retry.js";
import { scrollToEnd, scrollToStart } from "./scroll.js";
import { canEdit, page } from "./session.js";

// Commands for the session as a whole: find, go to the end, copy or retry the last answer.

async function openFind(text = "") {
  const [find, typed] = await lazyImportWithTyped(() => import("./find.js"));
  find?.open(text, typed);
}

function focusLast() {
  const message = lastMessage();
  message?.focus({ preventScroll: true });
  message?.scrollIntoView({ block: "nearest" });
}

/** Handles keys of the page. Ctrl+F opens Parley's search, and from its field the browser's search. */
function handlePageKey(event) {
  if (event.defaultPrevented || event.shiftKey || isDialogOpen()) return;
  const isFind = event.key === "f" && hasControl(event);
  const isUp = event.key === "ArrowUp" && event.altKey && !event.ctrlKey && !event.metaKey && !movesCaret(event);
  if (isFind && event.target.closest?.(".find")) return;
  const isStart = event.key === "Home" && hasControl(event) && !event.target.matches?.("input, textarea");
  if (isFind) openFind();
  else if (isUp) focusLast();
  else if (isStart) scrollToStart();
  if (isFind || isUp || isStart) event.preventDefault();
}

const hasMessages = () => Boolean(lastMessage());

function addReadingCommands() {
  const [copyLast, canCopy] = [() => copyMessage(lastMessage(".assistant")), () => Boolean(lastMessage(".assistant"))];
  for (const command of [
    { id: "find", label: words.find, icon: "search", keys: "Ctrl+F", slash: "find", run: openFind, takesText: true },
    { id: "first", label: words.firstGo, icon: "arrow-up", keys: "Ctrl+Home", slash: "first", run: scrollToStart },
    { id: "latest", label: words.latest, icon: "arrow-down", slash: "latest", run: scrollToEnd },
    { id: "go-last", label: words.lastGo, icon: "arrow-up", keys: "Alt+↑", run: focusLast },
    { id: "copy-last", label: words.lastCopy, icon: "copy", slash: "copy", run: copyLast, can: canCopy },
    { id: "print", label: words.print, icon: "printer", slash: "print", run: () => print() },
  ])
    addCommand({ can: hasMessages, ...command });
}

function addEditingCommands() {
  const mine = `.user[data-user-id="${page.dataset.viewerId}"]`;
  addCommand({
    id: "edit-last",
    label: words.lastEdit,
    icon: "pencil",
    slash: "edit",
    run: () => editMessage(lastMessage(mine)),
    can: () => Boolean(lastMessage(mine)),
  });
  addCommand({
    id: "retry-last",
    label: words.lastRetry,
    icon: "rotate-ccw",
    slash: "retry",
    run: () => retry(retryableAnswer()),
    can: () => Boolean(retryableAnswer()),
  });
}

/** Returns the last answer if it can be retried, or null. */
function retryableAnswer() {
  const message = lastMessage(":is(.assistant, .error)");
  return message && isFinished(message) && page.dataset.status === "idle" ? message : null;
}

const LONG_PRESS_MS = 450;
const GAP_PX = 6; // px between the toolbar and buttons beside it
const FOCUSED = ":focus-visible, :has(:focus-visible)";
const QUICK_ACTIONS = ["copy", "edit", "retry"];
const OWN_LONG_PRESS = "a, button, input, textarea, select, summary, pre, img, video, [contenteditable]";
const log = document.getElementById("log");
const list = document.getElementById("messages");
const status = document.getElementById("status");
const hoverBar = createBar("message-actions");
const lastBar = createBar("message-actions resting");

/** Returns the message of an element. */
const messageOf = (element) => element.closest?.("#messages > article.message") ?? null;

function connectToolbar() {
  status.after(lastBar);
  list.addEventListener(
    "pointerover",
    (event) =>
      event.pointerType === "touch" ||
      hasOpenMenu() ||
      hasKeyboardFocus() ||
      showBar(messageOf(event.target), { byPointer: true }),
  );
  list.addEventListener("pointermove", handlePointerMove);
  list.addEventListener("pointerleave", () => hasOpenMenu() || hasKeyboardFocus() || hideBar());
  list.addEventListener(
    "focusin",
    ({ target }) =>
      hoverBar.contains(target) || showBar(messageOf(target), { byPointer: !target.matches(":focus-visible") }),
  );
  list.addEventListener(
    "focusout",
    (event) => messageOf(event.relatedTarget ?? list) || hasOpenMenu() || hasKeyboardFocus() || hideBar(),
  );
  log.addEventListener("scroll", () => hoverBar.isConnected && (avoidRequest ||= requestAnimationFrame(avoidButtons)), {
    passive: true,
  });
  log.addEventListener("keydown", handleKey);
  list.addEventListener("pointerdown", handlePress);
  list.addEventListener(
    "contextmenu",
    (event) => event.pointerType === "touch" && !event.target.closest("a") && event.preventDefault(),
  );
  new MutationObserver(showLastBar).observe(list, { childList: true });
  new MutationObserver(showLastBar).observe(page, { attributeFilter: ["data-status"] });
  showLastBar();
}

function createBar(name) {
  const bar = createElement("div", { className: name, data: { own: "" }, role: "group", ariaLabel: words.actions });
  bar.addEventListener("click", ({ target }) => handleClick(bar, target.closest("button")));
  return bar;
}

function handleClick(bar, button) {
  const message = messageOf(bar) ?? lastMessage();
  if (!button || !message) return;
  if (button.dataset.name === "more") openMenuFor(message, button);
  else runAction(message, button.dataset.name === "answer" ? "retry" : button.dataset.name, button);
}

/** Fills a toolbar with the actions of a message. */
function fillBar(bar, message) {
  const possible = actionsFor(message).filter(({ name }) => QUICK_ACTIONS.includes(name));
  const wanted = [
    ...possible.map((action) => [action.name, action.icon, action.label(message)]),
    ["more", "ellipsis", words.actionMore],
  ];
  // If the last message is from a user, it has no answer, for example at the end of a fork. Then "Retry" is "Answer".
  const retryButton = bar === lastBar && message.matches(".user") ? wanted.find(([name]) => name === "retry") : null;
  retryButton?.splice(0, 3, "answer", "play", words.answer);
  const names = wanted.map(([name]) => name);
  for (const button of [...bar.children]) if (!names.includes(button.dataset.name)) removeButton(button);
  let next = bar.firstElementChild;
  for (const each of wanted) {
    if (next?.dataset.name === each[0]) next = updateButton(next, each).nextElementSibling;
    else bar.insertBefore(createButton(each), next);
  }
}

/** Removes a button. If it has the focus, moves it to the last button, which always stays. */
function removeButton(button) {
  if (button === document.activeElement) button.parentElement.lastElementChild.focus();
  button.remove();
}

/** Updates a button's label, which depends on the message: "Edit", or "Suggest an edit". */
function updateButton(button, [, , label]) {
  if (button.title !== label) Object.assign(button, { title: label, ariaLabel: label });
  return button;
}

function createButton([name, image, label]) {
  const isAnswer = name === "answer";
  const className = isAnswer ? "button small" : "icon-button";
  const button = createElement(
    "button",
    { type: "button", className, data: { name }, title: label, ariaLabel: label },
    createIcon(image),
    isAnswer ? label : "",
  );
  if (name === "more") button.ariaHasPopup = "menu";
  return button;
}

function showBar(message, { byPointer = false } = {}) {
  // The bar below the last message shows its actions.
  if (byPointer && message === lastMessage() && isVisible(lastBar)) return hideBar();
  if (!message || hoverBar.parentElement === message || message.querySelector(":scope > .edit")) return;
  fillBar(hoverBar, message);
  hideBar();
  message.append(hoverBar);
  updateLastBar(message);
  avoidButtons();
}

// Buttons in the upper corner of an answer's content. Like the toolbar, those of a long code block stay in view.
const CORNER_BUTTONS = ":is(.code-head, .table) > button";
let avoidRequest = 0;

/** Moves the toolbar beside buttons that it would cover. */
function avoidButtons() {
  avoidRequest = 0;
  const message = messageOf(hoverBar);
  if (!message) return;
  hoverBar.style.translate = "";
  const bar = hoverBar.getBoundingClientRect();
  const isUnder = ({ width, left, right, top, bottom }) =>
    width && left < bar.right && right > bar.left && top < bar.bottom && bottom > bar.top;
  const covered = [...message.querySelectorAll(CORNER_BUTTONS)].find((each) => isUnder(each.getBoundingClientRect()));
  if (!covered) return;
  const first = covered.parentElement.querySelector("button:not([hidden])").getBoundingClientRect();
  hoverBar.style.translate = `${Math.floor(first.left - bar.right - GAP_PX)}px`;
}

/** Returns whether an open menu or popover belongs to the toolbar, which then stays. */
const hasOpenMenu = () => hoverBar.querySelector("[aria-expanded=true]") !== null;

/** Returns whether the toolbar has the focus by a key. It then stays until the pointer moves to another message. */
const hasKeyboardFocus = () => hoverBar.querySelector(":focus-visible") !== null;

/** Shows the toolbar of the message under the pointer, if the pointer itself has moved and not only the content. */
function handlePointerMove({ target, pointerType, movementX, movementY }) {
  if (pointerType === "touch" || !(movementX || movementY) || hasOpenMenu()) return;
  showBar(messageOf(target), { byPointer: true });
}

function isVisible(bar) {
  const { top, height } = bar.getBoundingClientRect(); // 0 while it is hidden
  return height > 0 && top < log.getBoundingClientRect().bottom - height;
}

function hideBar() {
  if (hoverBar.contains(document.activeElement)) document.activeElement.blur(); // hides the toolbar
  hoverBar.remove();
  updateLastBar(null);
}

/** Hides the bar below the last message while that message has the focus and shows the other bar. */
function updateLastBar(message) {
  lastBar.classList.toggle("spare", message !== null && message === lastMessage() && message.matches(FOCUSED));
}

/** Shows the last message's actions below it, in place of the agent's status. */
function showLastBar() {
  const last = lastMessage();
  // The bar is hidden while the agent works. If the focus is in it, it moves to the message before the new answer.
  if (page.dataset.status !== "idle" && lastBar.querySelector(":focus"))
    lastMessage(":not([data-status=streaming])")?.focus({ preventScroll: true });
  lastBar.hidden = !last;
  if (last) fillBar(lastBar, last);
  const hovered = messageOf(hoverBar);
  if (hovered === last && isVisible(lastBar) && !hasOpenMenu() && !last.matches(FOCUSED)) return hideBar();
  if (hovered) fillBar(hoverBar, hovered); // a finished message can be edited
  updateLastBar(hovered);
}

function handleKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  const message = event.target.matches("article.message") ? event.target : null;
  if (!message && event.target !== log) return;
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  // Letters that are typed with the focus on the list go into the composer.
  if (!message && /^[\p{L}\p{N}]$/u.test(event.key) && !"jk".includes(key))
    return document.getElementById("text")?.focus();
  const way = { j: "next", k: "previous", ArrowDown: "next", ArrowUp: "previous" }[key];
  if (way ? !moveFocus(message, way, key.length > 1) : !runKey(message, key)) return;
  event.preventDefault();
  event.stopPropagation();
}

/** Moves the focus to the next or previous message. Arrow keys first scroll through a long message. */
function moveFocus(message, way, byArrow) {
  const edge = log.getBoundingClientRect();
  if (message && byArrow) {
    const { top, bottom } = message.getBoundingClientRect();
    if (way === "next" ? bottom > edge.bottom + 1 : top < edge.top - 1) return false;
  }
  const next = message ? nextMessage(message, way) : lastVisible(edge);
  next?.focus({ preventScroll: true });
  next?.scrollIntoView({ block: "nearest" });
  return Boolean(next);
}

const lastVisible = (edge) =>
  [...list.children].findLast(
    (each) => each.matches("article.message") && each.getBoundingClientRect().top < edge.bottom - 24,
  ) ?? null;

const ATTEMPT_KEYS = { ArrowLeft: -1, ArrowRight: 1 };

function trySwitch(message, by) {
  const can = canSwitchAttempt(message, by);
  if (can) switchAttempt(message, by);
  return can;
}

function runKey(message, key) {
  if (!message) return false;
  if (key === "Escape") document.getElementById("text")?.focus();
  else if (key === "Enter" || key === "m") openMenuFor(message, message);
  else if (key in ATTEMPT_KEYS) return trySwitch(message, ATTEMPT_KEYS[key]);
  else return runAction(message, key);
  return true;
}

/** Opens the menu on a long press, except on elements that handle long presses themselves. */
function handlePress(event) {
  const message = messageOf(event.target);
  if (
    event.pointerType !== "touch" ||
    !message ||
    event.target.closest(OWN_LONG_PRESS) ||
    message.hasAttribute("data-selectable")
  )
    return;
  onLongPress(event, LONG_PRESS_MS, () => {
    navigator.vibrate?.(10);
    openMenuFor(message, message, { byPress: true });
  });
}

export function connect() {
  document.addEventListener("keydown", handlePageKey);
  addEventListener("beforeprint", () => (document.querySelector(".top").dataset.printed = formatFull(new Date())));
  addReadingCommands();
  if (canEdit) addEditingCommands();
  connectToolbar();
}
