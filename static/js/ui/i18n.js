// The words that JavaScript says, in the reader's language: templates/chat/words.html has them.

const said = document.getElementById("words").dataset;

/** `words.tooLong` is data-too-long. A name that is not there is a mistake of ours, and says so at once. */
export const words = new Proxy(said, {
  get(all, name) {
    if (typeof name === "string" && !(name in all)) throw new Error(`No words for ${name}`);
    return all[name];
  },
});

/** Puts values into the {places} of a sentence. */
export function fill(sentence, values) {
  return sentence.replace(/\{(\w+)\}/g, (place, name) => values[name] ?? place);
}
