// For pages without a session: a socket that reports changes of the session list ("parley:rail" on the document).
import { Socket } from "./socket.js";

const CALM = { ping: 30_000, first: 1_000, longest: 60_000 }; // the list also refreshes itself now and then

class News extends Socket {
  /** Refreshes the list: it may have changed since the page was rendered or while there was no connection. */
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

/** Connects, for as long as the page is open and the user is signed in. */
export function ring() {
  socket.connect();
}

export const listening = () => socket.state === "connected";
