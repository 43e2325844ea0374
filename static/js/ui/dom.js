// Creates elements, opens dialogs, and reads and writes fields. Patches a part of the page to new HTML: it changes only
// what differs, so that selections and open details survive.

const SVG = "http://www.w3.org/2000/svg";

/** Creates an element with properties, `data-` attributes and content. */
export function createElement(name, { data = {}, ...properties } = {}, ...content) {
  const element = Object.assign(document.createElement(name), properties);
  Object.assign(element.dataset, data);
  element.append(...content);
  return element;
}

/** Returns the icon of icons.svg with this name, or without a name an empty icon of the same size. */
export function createIcon(name) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  const use = document.createElementNS(SVG, "use");
  if (name) use.setAttribute("href", `${iconsAddress()}#${name}`);
  svg.append(use);
  return svg;
}

// The address of icons.svg contains a hash, so it is read from an icon that the server has rendered.
const iconsAddress = () => document.querySelector("svg.icon use[href]").getAttribute("href").split("#")[0];

/** Returns a copy of the content of the template with this id. */
export const cloneTemplate = (id) => document.getElementById(id).content.firstElementChild.cloneNode(true);

/**
 * Opens a dialog, and removes it when it closes. Resolves to its `returnValue`. Never leaves the page without focus.
 */
export function openDialog(dialog) {
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      dialog.remove();
      if (document.activeElement === document.body) document.getElementById("main")?.focus({ preventScroll: true });
      resolve(dialog.returnValue);
    });
  });
}

export const isChoice = ({ type }) => type === "radio" || type === "checkbox";

/** Returns the values of fields in their order, to be stored as a draft. */
export const readFields = (fields) => fields.map((field) => (isChoice(field) ? field.checked : field.value));

/** Returns whether the user has changed a field since it was rendered. */
export function isChanged(field) {
  if (isChoice(field)) return field.checked !== field.defaultChecked;
  if (!field.options) return field.value !== field.defaultValue;
  const initial = [...field.options].findIndex(({ defaultSelected }) => defaultSelected);
  return field.selectedIndex !== Math.max(initial, 0);
}

/** Fills in fields with a draft. Returns false and changes nothing if the draft belongs to other fields. */
export function fillFields(fields, draft) {
  if (draft?.length !== fields.length) return false;
  for (const [index, field] of fields.entries()) field[isChoice(field) ? "checked" : "value"] = draft[index];
  return true;
}

/** Replaces a range of a field as if the text had been typed, so that Ctrl+Z undoes it. */
export function replaceRange(field, text, from, to) {
  field.focus();
  field.setSelectionRange(from, to);
  if (document.execCommand("insertText", false, text)) return;
  field.setRangeText(text, from, to, "end");
  fireInput(field);
}

/** Reports that a script has changed the text of a field. */
export function fireInput(field) {
  field.dispatchEvent(new InputEvent("input", { bubbles: true }));
}

/** Asks the user in a dialog. Resolves to whether the user pressed the button with the label `button`. */
export async function askToConfirm({ title, text, button }) {
  const dialog = cloneTemplate("confirm-request");
  const words = { title, text, confirm: button };
  for (const [name, value] of Object.entries(words)) dialog.querySelector(`[data-name=${name}]`).textContent = value;
  return (await openDialog(dialog)) === "confirm";
}

/** The distance in px up to which an element counts as scrolled to its end. */
export const NEAR_END_PX = 40;

/** Returns how far an element can be scrolled down, in px. */
export const distanceToEnd = (element) => element.scrollHeight - element.scrollTop - element.clientHeight;

const parser = document.createElement("template");
// Attributes that only scripts of the page set, such as what is open or unfolded. Patches keep them.
const KEPT_ATTRIBUTES = ["aria-expanded", "aria-pressed", "data-expanded", "data-selectable", "data-shows"];

/** Parses HTML into nodes. */
export function parseHtml(html) {
  parser.innerHTML = html;
  return parser.content;
}

/** Makes the children of `old` equal to those of `fresh`. Nodes of `fresh` are moved to `old`. */
export function patchChildren(old, fresh) {
  let mine = old.firstChild;
  let theirs = fresh.firstChild;
  while (mine && theirs) {
    const [nextMine, nextTheirs] = [mine.nextSibling, theirs.nextSibling];
    patchNode(mine, theirs);
    [mine, theirs] = [nextMine, nextTheirs];
  }
  removeFrom(mine);
  while (theirs) {
    const next = theirs.nextSibling;
    old.append(theirs);
    theirs = next;
  }
}

/** Makes an element equal to another of the same name. */
export function patchElement(old, fresh) {
  patchAttributes(old, fresh);
  patchChildren(old, fresh);
}

function patchNode(mine, theirs) {
  if (mine.isEqualNode(theirs) || isLoadedImage(mine, theirs)) return;
  if (mine.nodeType === Node.TEXT_NODE && theirs.nodeType === Node.TEXT_NODE) patchText(mine, theirs.data);
  else if (mine.nodeType === Node.ELEMENT_NODE && mine.nodeName === theirs.nodeName) patchElement(mine, theirs);
  else mine.replaceWith(theirs);
}

/** Returns whether a node is an image that the user has loaded, which is kept. */
function isLoadedImage(mine, theirs) {
  const picture = mine.dataset?.picture;
  return picture !== undefined && picture === theirs.querySelector?.("button")?.dataset.picture;
}

function patchText(node, text) {
  // Appending keeps a selection inside the node. Setting the data would collapse it.
  if (text.startsWith(node.data)) node.appendData(text.slice(node.data.length));
  else node.data = text;
}

function patchAttributes(old, fresh) {
  const isToggled = old.nodeName === "DETAILS" && old.open !== (old.dataset.default === "open");
  const isKept = (name) => (name === "open" && isToggled) || KEPT_ATTRIBUTES.includes(name);
  for (const { name } of [...old.attributes]) {
    if (!isKept(name) && !fresh.hasAttribute(name)) old.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (!isKept(name) && old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
}

function removeFrom(node) {
  while (node) {
    const next = node.nextSibling;
    if (node.dataset?.own === undefined) node.remove(); // keep elements that a script has added at the end
    node = next;
  }
}
