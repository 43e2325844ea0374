// Prepares lists whose rows come and go for a patch, which matches children by their position.

/**
 * Gives `list` the rows of `fresh` in their order, so that a patch makes each row equal to the fresh one with the same
 * `keyOf(row)`. Rows that are still listed keep their elements, and with them open forms and typed text.
 */
export function alignRows(list, fresh, keyOf) {
  fresh.replaceChildren(...fresh.children); // without the whitespace between rows
  const wanted = [...fresh.children];
  const keys = new Set(wanted.map(keyOf));
  for (const node of [...list.childNodes]) if (!keys.has(keyOf(node))) node.remove();
  const rows = new Map([...list.children].map((row) => [keyOf(row), row]));
  let at = list.firstElementChild;
  for (const row of wanted) {
    const mine = rows.get(keyOf(row)) ?? row.cloneNode(true);
    if (mine === at) at = at.nextElementSibling;
    else list.insertBefore(mine, at);
  }
}
