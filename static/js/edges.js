// Where the list begins and ends while it lacks older or newer messages.
const list = document.getElementById("messages");
const CAN_BE = { older: "before", newer: "after" };

/** Whether older messages have yet to be loaded, or "newer" ones. */
export const lacks = (id) => Boolean(document.getElementById(id).dataset[CAN_BE[id]]);

/** Says whether an older page has yet to bring this sequence number. */
export const isBefore = (sequence) => sequence !== null && lacks("older") && sequence < (placeAt("older") ?? Infinity);

/** Says whether a newer page has yet to bring this sequence number. */
export const isAfter = (sequence) => sequence !== null && lacks("newer") && sequence > (placeAt("newer") ?? 0);

/** What to ask for to have more: places move, and an end knows only where it was when it was drawn. */
export function beyond(id) {
  const place = placeAt(id);
  return place === undefined ? {} : { [CAN_BE[id]]: place };
}

function placeAt(id) {
  let message = id === "older" ? list.firstElementChild : list.lastElementChild;
  while (message && !message.dataset.sequence) message = id === "older" ? message.nextElementSibling : message.previousElementSibling;
  return message ? Number(message.dataset.sequence) : undefined;
}
