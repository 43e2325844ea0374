// Elements: made from nothing, from a template or from HTML, and shown in dialogs. A part of the page is made equal to new
// HTML by touching only what differs, so that selections and open details survive.

const SVG = "http://www.w3.org/2000/svg";

/** Makes an element with properties, `data-` attributes and content. */
export function make(name, { data = {}, ...properties } = {}, ...content) {
  const element = Object.assign(document.createElement(name), properties);
  Object.assign(element.dataset, data);
  element.append(...content);
  return element;
}

/** An icon of icons.svg by its name; one of no name keeps the place of one. */
export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  const use = document.createElementNS(SVG, "use");
  if (name) use.setAttribute("href", `${sprite()}#${name}`);
  svg.append(use);
  return svg;
}

// Its address has a hash of its content: any icon that the page was made with knows it.
const sprite = () => document.querySelector("svg.icon use[href]").getAttribute("href").split("#")[0];

/** A copy of what the template of this id holds. */
export const copyOf = (id) => document.getElementById(id).content.firstElementChild.cloneNode(true);

/** Shows a dialog as long as it is open; resolves to its `returnValue`. */
export function answerOf(dialog) {
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue);
    });
  });
}

const parser = document.createElement("template");
// What is open, shown as a whole, or shown as a diagram, is not the server's to know.
const BROWSERS_OWN = ["aria-expanded", "aria-pressed", "data-expanded", "data-shows"];

/** The nodes that HTML stands for. */
export function parse(html) {
  parser.innerHTML = html;
  return parser.content;
}

/** Makes the children of `old` equal those of `fresh`, which is used up. */
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

/** Makes an element equal another of the same name. */
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

/** A picture that the reader has loaded stays. */
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
    if (node.dataset?.own === undefined) node.remove(); // what the browser put at the end is not the server's to know
    node = next;
  }
}
