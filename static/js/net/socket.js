// A socket that reconnects by itself and notices when the server no longer answers, and the one of pages without a session.
import { responds } from "./http.js";

const ANSWER_WITHIN = 10_000;
const FINAL = { 4401: "signed-out", 4403: "no-access", 4404: "gone" };
const QUICK = { ping: 20_000, first: 300, longest: 15_000 };

let latest = null; // the page's socket

/** Resolves to whether the server can be reached: asks it if the socket does not show that. */
export async function isReachable() {
  return isSurelyReachable() || (await responds());
}

/** Whether there is a connection now. Without one, the server may still be reachable: proxies can refuse sockets. */
export const isSurelyReachable = () => navigator.onLine && latest?.state === "connected";

/**
 * Fires "state" (connecting, connected, reconnecting, offline, closed). Calls `received` with each frame, `opened` and
 * `released` when a connection opens and when it is lost.
 */
export class Socket extends EventTarget {
  state = "connecting";
  reason = ""; // why it is closed
  #address;
  #pace;
  #socket = null;
  #tries = 0;
  #timers = { retry: 0, ping: 0, answer: 0 };
  #isListening = false;

  /** `pace` in ms: the time between pings, the delay before the first retry, and the longest delay before a retry. */
  constructor(address, pace = QUICK) {
    super();
    this.#address = location.origin.replace(/^http/, "ws") + address;
    this.#pace = pace;
  }

  opened() {}

  received(_frame) {}

  released() {}

  connect() {
    latest = this;
    if (!this.#isListening) this.#listen();
    clearTimeout(this.#timers.retry);
    this.#release();
    const socket = new WebSocket(this.#address);
    this.#socket = socket;
    socket.onopen = () => socket === this.#socket && this.#opened();
    socket.onmessage = (event) => socket === this.#socket && this.#heard(JSON.parse(event.data));
    socket.onclose = (event) => socket === this.#socket && this.#closed(event.code);
    this.#expectAnswer(); // a connection that does not open in time counts as lost
  }

  /** Sends a command; returns false if there is no open connection. */
  send(command) {
    if (this.state !== "connected" || this.#socket.readyState !== WebSocket.OPEN) return false;
    this.#socket.send(JSON.stringify(command));
    return true;
  }

  /** Resets the delay: the connection has worked, so that the next retry comes soon. */
  proved() {
    this.#tries = 0;
  }

  /** Reconnects after a lost connection, with growing random delays, so that not all pages come back at once. */
  lost() {
    if (this.state === "closed") return;
    this.#release();
    this.#become(navigator.onLine ? "reconnecting" : "offline");
    const wait = Math.min(this.#pace.longest, this.#pace.first * 2 ** this.#tries++) * (0.5 + Math.random() / 2);
    clearTimeout(this.#timers.retry);
    this.#timers.retry = setTimeout(() => this.connect(), wait);
  }

  emit(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }

  #listen() {
    this.#isListening = true;
    addEventListener("online", () => this.#retryNow());
    addEventListener("offline", () => this.lost());
    addEventListener("pageshow", (event) => event.persisted && this.#lookAlive());
    document.addEventListener("visibilitychange", () => document.hidden || this.#lookAlive());
  }

  #opened() {
    this.#answered();
    this.#timers.ping = setInterval(() => this.#ping(), this.#pace.ping);
    this.#become("connected");
    this.opened();
  }

  #heard(frame) {
    if (frame.op !== "pong") return this.received(frame);
    this.#answered();
    this.proved();
  }

  #ping() {
    this.send({ type: "ping" });
    if (!this.#timers.answer) this.#expectAnswer();
  }

  #expectAnswer() {
    clearTimeout(this.#timers.answer);
    this.#timers.answer = setTimeout(() => this.lost(), ANSWER_WITHIN);
  }

  #answered() {
    clearTimeout(this.#timers.answer);
    this.#timers.answer = 0;
  }

  #lookAlive() {
    if (this.state === "connected" && this.#socket.readyState !== WebSocket.OPEN) this.lost();
    else if (this.state === "connected") this.#ping();
    else this.#retryNow();
  }

  #closed(code) {
    const end = FINAL[code];
    if (!end) return this.lost();
    this.#release();
    this.#become("closed", end);
  }

  #retryNow() {
    if (this.state === "connected" || this.state === "closed") return;
    this.#tries = 0;
    this.connect();
  }

  #release() {
    this.released();
    clearInterval(this.#timers.ping);
    this.#answered();
    const socket = this.#socket;
    this.#socket = null;
    socket?.close();
  }

  #become(state, reason = "") {
    Object.assign(this, { state, reason });
    this.emit("state", { state, reason });
  }
}

// For pages without a session: a socket that reports changes of the session list ("parley:rail" on the document).

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
