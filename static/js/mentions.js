// "@" and a name: completing the names of those who are in the session.
import { insert } from "./field.js";
import { page } from "./page.js";
import { valueAt } from "./server.js";

const FRESH = 60_000;
let people = null; // a promise
let askedAt = 0;

/** Suggests people, oneself left out. */
export const source = {
  at(text, caret) {
    const found = /(?:^|[\s(])@([^@\n]{0,40})$/u.exec(text.slice(0, caret));
    return found && { from: caret - found[1].length - 1, query: found[1].toLowerCase() };
  },
  async find(query) {
    const others = (await known()).filter(({ id }) => String(id) !== page.dataset.viewerId);
    return others.filter((person) => fits(person, query)).map(suggestion);
  },
  take({ label }, { from, to }) {
    insert(`@${label} `, from, to);
    return true;
  },
};

function fits({ name, username }, query) {
  if (!query) return true;
  return [name, username, ...name.split(/\s+/)].some((word) => word.toLowerCase().startsWith(query));
}

function suggestion({ id, name, username, initials, colour }) {
  const face = document.createElement("span");
  face.className = `face small ${colour}`;
  face.dataset.person = id;
  face.ariaHidden = "true";
  face.textContent = initials;
  return { label: name, detail: username, face };
}

function known() {
  if (people && Date.now() - askedAt < FRESH) return people;
  askedAt = Date.now();
  people = valueAt(`/sessions/${page.dataset.session}/people`).then((list) => list?.people ?? []);
  return people;
}
