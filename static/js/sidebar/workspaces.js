// The user's workspaces: which one this page shows, and switching. A single workspace is not shown.
import { offer, on } from "../ui/commands.js";
import { fill, words } from "../ui/i18n.js";
import { openMenu } from "../ui/popover.js";

const list = document.getElementById("rail-list");
const button = document.getElementById("rail-switch");
// The workspace in which home's form creates a session; "" is the user's current one.
const begins = document.querySelector("#begin [name=workspace]");

/** The workspaces, as last received: {id, name, initials, colour, address, here, unread}. */
const places = () => JSON.parse(document.getElementById("rail-places").dataset.places);

/** The id of the workspace that this page shows; "" if there is only one. */
export const shownWorkspace = () => String(places().find(({ here }) => here)?.id ?? "");

const go = ({ address }) => location.assign(address);

function item(place) {
  return { label: place.name, checked: place.here, unread: place.unread ? words.unread : "", run: () => go(place) };
}

/** Updates what was rendered with the page. */
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
