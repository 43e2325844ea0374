// The workspaces that somebody is in: which one this page shows, and going to another. Of a single one nothing is said.
import { offer, on } from "../ui/commands.js";
import { fill, words } from "../ui/i18n.js";
import { openMenu } from "../ui/popover.js";

const list = document.getElementById("rail-list");
const button = document.getElementById("rail-switch");
// Where the home page's form begins a session; "" is wherever its writer is.
const begins = document.querySelector("#begin [name=workspace]");

/** All of them as the list has last heard: {id, name, initials, colour, address, here, unread}. */
const places = () => JSON.parse(document.getElementById("rail-places").dataset.places);

/** The id of the one that this page shows, wherever its reader is on other pages; "" where there is but one. */
export const shownWorkspace = () => String(places().find(({ here }) => here)?.id ?? "");

const go = ({ address }) => location.assign(address);

function item(place) {
  return { label: place.name, checked: place.here, unread: place.unread ? words.unread : "", run: () => go(place) };
}

/** What was drawn with the page follows the list's news. */
function draw() {
  const all = places();
  const here = all.find((place) => place.here);
  button.hidden = all.length < 2;
  if (begins) begins.value = here?.id ?? "";
  if (here) {
    const face = button.querySelector(".face");
    face.textContent = here.initials;
    face.className = `face small ${here.colour}`;
    button.querySelector(".rail-place").textContent = here.name;
    button.querySelector(".unread").hidden = !all.some(({ unread }) => unread);
  }
  all.forEach(offerWay);
}

function offerWay({ id, name, address }) {
  const there = () => places().find((place) => place.id === id);
  const can = () => there()?.here === false;
  offer({
    id: `workspace-${id}`,
    label: fill(words.goToWorkspace, { name }),
    icon: "chevrons-up-down",
    can,
    run: () => go({ address }),
  });
}

export function connect() {
  on("workspaces", () => openMenu(button, [places().map(item)], { label: words.workspaces }));
  draw();
  list.addEventListener("parley:listed", draw);
}
