// Profile pictures and icons of agents. Users and agents without one keep their initials.
import { icon } from "./dom.js";

const known = new Map();
let icons = {};

/** Stores addresses of pictures by user id (`{"7": "/people/7/picture?v=…"}`, "" for none), and shows them. */
export function know(pictures) {
  for (const [person, address] of Object.entries(pictures)) known.set(person, address);
  dress(document);
}

/** Stores the icons of agents by name (`{"researcher": "search"}`), and shows them. */
export function knowIcons(given) {
  icons = given;
  dressAgents(document);
}

/** Returns the ids of users at or below a node whose pictures are not known. */
export function strangers(root) {
  const people = [...root.querySelectorAll(".face[data-person]")].map(({ dataset }) => dataset.person);
  return people.filter((person) => !known.has(person));
}

/** Shows the known pictures at or below a node. */
export function dress(root) {
  dressAgents(root);
  if (!known.size) return;
  if (root.matches?.(".face[data-person]")) show(root);
  for (const face of root.querySelectorAll(".face[data-person]")) show(face);
}

function show(face) {
  const address = known.get(face.dataset.person);
  const picture = face.querySelector("img");
  if (address === undefined || picture?.getAttribute("src") === address) return;
  picture?.remove();
  if (address) face.append(image(address));
}

function dressAgents(root) {
  for (const face of root.querySelectorAll(".face[data-agent]")) {
    const name = icons[face.dataset.agent];
    if (name) face.replaceChildren(icon(name));
  }
}

function image(address) {
  const picture = new Image();
  picture.alt = "";
  picture.decoding = "async";
  picture.src = address;
  picture.addEventListener("error", () => picture.remove(), { once: true });
  return picture;
}

export function connect() {
  for (const place of document.querySelectorAll("[data-faces]")) know(JSON.parse(place.dataset.faces));
  for (const place of document.querySelectorAll("[data-icons]")) knowIcons(JSON.parse(place.dataset.icons));
}
