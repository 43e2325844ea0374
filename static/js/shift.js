// Messages whose places have changed because others before them were taken out or put back.

/** Moves all messages from a place on; not those that were read from the rows after that had happened. */
export function shift({ from, by, revision }) {
  for (const element of document.querySelectorAll("#messages > [data-sequence]")) {
    const place = Number(element.dataset.sequence);
    if (place < from || Number(element.dataset.revision) >= revision) continue;
    element.dataset.sequence = place + by;
    element.dataset.revision = revision;
  }
}
