// Creates elements by name, from a template or from HTML, and shows them in dialogs. Updates a part of the page to new
// HTML by changing only what differs, so that selections and open details survive.

const SVG = "http://www.w3.org/2000/svg";

/** Creates an element with properties, `data-` attributes and content. */
export function make(name, { data = {}, ...properties } = {}, ...content) {
  const element = Object.assign(document.createElement(name), properties);
  Object.assign(element.dataset, data);
  element.append(...content);
  return element;
}

/** Returns an icon of icons.svg by its name; without a name, an empty one of the same size. */
export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  const use = document.createElementNS(SVG, "use");
  if (name) use.setAttribute("href", `${sprite()}#${name}`);
  svg.append(use);
  return svg;
}

// The file's address contains a hash: take it from an icon that the server rendered.
const sprite = () => document.querySelector("svg.icon use[href]").getAttribute("href").split("#")[0];

/** Returns a copy of the content of the template with this id. */
export const copyOf = (id) => document.getElementById(id).content.firstElementChild.cloneNode(true);

/** Opens a dialog, and removes it when it closes; resolves to its `returnValue`. What had the focus before may have gone. */
export function answerOf(dialog) {
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

const isChoice = ({ type }) => type === "radio" || type === "checkbox";

/** Returns what is entered in fields, in their order, to be stored as a draft. */
export const enteredIn = (fields) => fields.map((field) => (isChoice(field) ? field.checked : field.value));

/** Fills fields in with a draft; returns false, and changes nothing, for a draft of other fields. */
export function fillFields(fields, draft) {
  if (draft?.length !== fields.length) return false;
  for (const [at, field] of fields.entries()) field[isChoice(field) ? "checked" : "value"] = draft[at];
  return true;
}

/** Asks with a dialog; resolves to whether the user pressed `button`. */
export async function confirmed({ title, text, button }) {
  const dialog = copyOf("confirm-request");
  const words = { title, text, confirm: button };
  for (const [name, value] of Object.entries(words)) dialog.querySelector(`[data-name=${name}]`).textContent = value;
  return (await answerOf(dialog)) === "confirm";
}

const parser = document.createElement("template");
// State that only the browser has: what is open, unfolded, or drawn as a diagram.
const BROWSERS_OWN = ["aria-expanded", "aria-pressed", "data-expanded", "data-shows"];

/** Parses HTML into nodes. */
export function parse(html) {
  parser.innerHTML = html;
  return parser.content;
}

/** Makes the children of `old` equal to those of `fresh`, whose nodes are moved. */
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
  if (mine.isEqualNode(theirs) || isShown(mine, theirs)) return;
  if (mine.nodeType === Node.TEXT_NODE && theirs.nodeType === Node.TEXT_NODE) patchText(mine, theirs.data);
  else if (mine.nodeType === Node.ELEMENT_NODE && mine.nodeName === theirs.nodeName) patchElement(mine, theirs);
  else mine.replaceWith(theirs);
}

/** Keeps an image that the user has loaded. */
function isShown(mine, theirs) {
  const picture = mine.dataset?.picture;
  return picture !== undefined && picture === theirs.querySelector?.("button")?.dataset.picture;
}

function patchText(node, text) {
  // Appending leaves a selection inside the node where it is; setting the data would collapse it.
  if (text.startsWith(node.data)) node.appendData(text.slice(node.data.length));
  else node.data = text;
}

function patchAttributes(old, fresh) {
  const readerTouched = old.nodeName === "DETAILS" && old.open !== (old.dataset.default === "open");
  const kept = (name) => (name === "open" && readerTouched) || BROWSERS_OWN.includes(name);
  for (const { name } of [...old.attributes]) {
    if (!kept(name) && !fresh.hasAttribute(name)) old.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (!kept(name) && old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
}

function removeFrom(node) {
  while (node) {
    const next = node.nextSibling;
    if (node.dataset?.own === undefined) node.remove(); // keep what the page has added at the end
    node = next;
  }
}
