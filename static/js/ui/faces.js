// Faces: profile pictures of users, and icons of agents. Without a picture or an icon, a face shows initials.
import { createIcon } from "./dom.js";

const pictures = new Map();
let agentIcons = {};

/** Adds addresses of pictures by user id (`{"7": "/people/7/picture?v=…"}`, "" for none), and shows them. */
export function setPictures(added) {
  for (const [person, address] of Object.entries(added)) pictures.set(person, address);
  updateFaces(document);
}

/** Stores the icons of agents by name (`{"researcher": "search"}`), and shows them. */
export function setAgentIcons(newIcons) {
  agentIcons = newIcons;
  updateAgentIcons(document);
}

/** Returns the ids of users below a node for whom no address of a picture has been set. */
export function peopleWithoutPicture(root) {
  const people = [...root.querySelectorAll(".face[data-person]")].map(({ dataset }) => dataset.person);
  return people.filter((person) => !pictures.has(person));
}

/** Shows pictures and icons in the faces at or below a node. */
export function updateFaces(root) {
  updateAgentIcons(root);
  if (!pictures.size) return;
  if (root.matches?.(".face[data-person]")) updatePicture(root);
  for (const face of root.querySelectorAll(".face[data-person]")) updatePicture(face);
}

function updatePicture(face) {
  const address = pictures.get(face.dataset.person);
  const picture = face.querySelector("img");
  if (address === undefined || picture?.getAttribute("src") === address) return;
  picture?.remove();
  if (address) face.append(createPicture(address));
}

function updateAgentIcons(root) {
  for (const face of root.querySelectorAll(".face[data-agent]")) {
    const name = agentIcons[face.dataset.agent];
    if (name) face.replaceChildren(createIcon(name));
  }
}

function createPicture(address) {
  const picture = new Image();
  picture.alt = "";
  picture.decoding = "async";
  picture.src = address;
  picture.addEventListener("error", () => picture.remove(), { once: true });
  return picture;
}

export function connect() {
  for (const place of document.querySelectorAll("[data-faces]")) setPictures(JSON.parse(place.dataset.faces));
  for (const place of document.querySelectorAll("[data-icons]")) setAgentIcons(JSON.parse(place.dataset.icons));
}
