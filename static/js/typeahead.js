// Going to the next of some things by the first letters of its name.

const PAUSE = 600;

/** Makes a finder: `find(letter, all, present)` is what begins with the letters so far; the same letter again goes on. */
export function typeahead(nameOf) {
  let written = "";
  let timer = 0;
  return (letter, all, present) => {
    clearTimeout(timer);
    timer = setTimeout(() => (written = ""), PAUSE);
    written = written === letter ? letter : written + letter;
    const after = written.length > 1 ? present : present + 1;
    const order = [...all.slice(after), ...all.slice(0, after)];
    return order.find((each) => nameOf(each).toLocaleLowerCase().startsWith(written.toLocaleLowerCase()));
  };
}
