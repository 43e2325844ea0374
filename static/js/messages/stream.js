// The text of streaming messages: finished blocks stay, the unfinished tail is patched.
import { make, parse, patchChildren } from "../ui/dom.js";

export class Streams {
  #states = new Map();
  #dirty = new Set();

  /** Returns the page's state of each streaming message, in the form of a sync request. */
  have() {
    return Object.fromEntries([...this.#states].map(([id, state]) => [id, { blocks: state.blocks, rev: state.rev }]));
  }

  knows(id) {
    return this.#states.has(id);
  }

  forget(id) {
    this.#states.delete(id);
    this.#dirty.delete(id);
  }

  /** Applies a snap or delta frame; returns false if earlier frames are missing. */
  apply(frame) {
    const body = document.getElementById(frame.id)?.querySelector("[data-body]");
    if (!body) return true; // not on this page yet: its message frame or a sync will bring it
    const state = this.#states.get(frame.id);
    if (frame.op === "snap") return this.#snap(frame, body, state);
    if (!state) return false;
    if (frame.n <= state.n) return true;
    if (frame.n > state.n + 1) return false;
    this.#delta(frame, body, state);
    return true;
  }

  /** Draws the tails that changed since the last call. */
  flush() {
    for (const id of this.#dirty) {
      const state = this.#states.get(id);
      const body = document.getElementById(id)?.querySelector("[data-body]");
      if (state && body) patchChildren(tailOf(body), parse(state.tail));
    }
    this.#dirty.clear();
  }

  /** Applies a snap, which replaces the whole text and restarts the numbering of its frames. */
  #snap(frame, body, state) {
    if (frame.from > (state?.blocks ?? 0)) return this.#drop(frame.id);
    place(body, frame.from, frame.blocks);
    this.#states.set(frame.id, {
      n: frame.n,
      rev: frame.rev,
      blocks: frame.from + frame.blocks.length,
      tail: frame.tail,
    });
    this.#dirty.add(frame.id);
    return true;
  }

  #delta(frame, body, state) {
    const tail = tailOf(body);
    for (const html of frame.blocks ?? []) tail.before(block(html));
    state.blocks += frame.blocks?.length ?? 0;
    for (const [index, html] of frame.replace ?? []) {
      patchChildren(body.children[index], parse(html));
      state.rev += 1;
    }
    state.n = frame.n;
    state.tail = state.tail.slice(0, frame.keep ?? 0) + (frame.tail ?? "");
    this.#dirty.add(frame.id);
  }

  #drop(id) {
    this.forget(id);
    return false;
  }
}

const block = (html) => make("div", { className: "block" }, parse(html));

/** Replaces the blocks from an index on; equal ones are left alone. */
function place(body, from, blocks) {
  const tail = tailOf(body);
  blocks.forEach((html, offset) => {
    const present = body.children[from + offset];
    const fresh = block(html);
    if (present === tail) tail.before(fresh);
    else if (!present.isEqualNode(fresh)) patchChildren(present, fresh);
  });
  while (body.children[from + blocks.length] !== tail) body.children[from + blocks.length].remove();
}

function tailOf(body) {
  const last = body.lastElementChild;
  if (last?.className === "tail") return last;
  return body.appendChild(make("div", { className: "tail" }));
}
