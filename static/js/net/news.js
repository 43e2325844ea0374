// For pages that show no session: a socket that says when the list of sessions has news ("parley:rail" on the document).
import { Socket } from "./socket.js";

const CALM = { ping: 30_000, first: 1_000, longest: 60_000 }; // the list looks by itself now and then, too

class News extends Socket {
  /** Whatever there was meanwhile, also since the page was made. */
  opened() {
    tell();
  }

  received(frame) {
    this.proved();
    if (frame.op === "rail") tell();
  }
}

const socket = new News("/ws/me", CALM);
const tell = () => document.dispatchEvent(new Event("parley:rail"));

/** Begins to listen, for as long as the page is open and somebody is signed in. */
export function ring() {
  socket.connect();
}

export const listening = () => socket.state === "connected";
