// Making a part of the page equal to new HTML by touching only what differs, so that selections and open details survive.

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
