// People's pictures, where they have one; where they have none their initials stay.

const known = new Map();

/** Learns addresses of pictures by people's ids (`{"7": "/people/7/picture?v=…"}`), "" for none, and shows all. */
export function know(pictures) {
  for (const [person, address] of Object.entries(pictures)) known.set(person, address);
  dress(document);
}

/** The ids of those on a node's faces of whom nothing has been learned. */
export function strangers(root) {
  const people = [...root.querySelectorAll(".face[data-person]")].map(({ dataset }) => dataset.person);
  return people.filter((person) => !known.has(person));
}

/** Puts the pictures that are known on every face at or below a node. */
export function dress(root) {
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
}
