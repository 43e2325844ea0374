// A socket that reconnects and detects when the server no longer answers. Also the socket of pages without a session.
import { serverResponds } from "./http.js";

const ANSWER_TIMEOUT_MS = 10_000;
const CLOSE_REASONS = { 4401: "signed-out", 4403: "no-access", 4404: "gone" };
const SESSION_PACE = { ping: 20_000, first: 300, longest: 15_000 };

let pageSocket = null; // the page's socket

/** Resolves to whether the server can be reached. Sends a request to find out if the socket is not connected. */
export async function isReachable() {
  return isConnected() || (await serverResponds());
}

/** Returns whether the socket is connected. If it is not, the server may still respond: proxies can block sockets. */
export const isConnected = () => navigator.onLine && pageSocket?.state === "connected";

/**
 * Fires "state" (connecting, connected, reconnecting, offline, closed). Subclasses override `onFrame`, which is called
 * with each frame, `onOpen` for each new connection, and `onRelease` when a connection is given up.
 */
export class Socket extends EventTarget {
  state = "connecting";
  reason = ""; // why the socket is closed
  #address;
  #pace;
  #socket = null;
  #attempts = 0;
  #timers = { retry: 0, ping: 0, answer: 0 };
  #hasListeners = false;

  /** `pace` in ms: the time between pings, the delay before the first retry, and the longest delay before a retry. */
  constructor(address, pace = SESSION_PACE) {
    super();
    this.#address = location.origin.replace(/^http/, "ws") + address;
    this.#pace = pace;
  }

  onOpen() {}

  onFrame(_frame) {}

  onRelease() {}

  connect() {
    pageSocket = this;
    if (!this.#hasListeners) this.#addListeners();
    clearTimeout(this.#timers.retry);
    this.#release();
    const socket = new WebSocket(this.#address);
    this.#socket = socket;
    socket.onopen = () => socket === this.#socket && this.#handleOpen();
    socket.onmessage = (event) => socket === this.#socket && this.#handleMessage(JSON.parse(event.data));
    socket.onclose = (event) => socket === this.#socket && this.#handleClose(event.code);
    this.#startAnswerTimeout(); // a connection that does not open in time counts as lost
  }

  /** Sends a command. Returns false if there is no open connection. */
  send(command) {
    if (this.state !== "connected" || this.#socket.readyState !== WebSocket.OPEN) return false;
    this.#socket.send(JSON.stringify(command));
    return true;
  }

  /** Resets the delay before the next retry, because the connection has worked. */
  resetRetryDelay() {
    this.#attempts = 0;
  }

  /** Reconnects after growing random delays, so that not all pages reconnect at the same time. */
  reconnectLater() {
    if (this.state === "closed") return;
    this.#release();
    this.#setState(navigator.onLine ? "reconnecting" : "offline");
    const wait = Math.min(this.#pace.longest, this.#pace.first * 2 ** this.#attempts++) * (0.5 + Math.random() / 2);
    clearTimeout(this.#timers.retry);
    this.#timers.retry = setTimeout(() => this.connect(), wait);
  }

  emit(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }

  #addListeners() {
    this.#hasListeners = true;
    addEventListener("online", () => this.#retryNow());
    addEventListener("offline", () => this.reconnectLater());
    addEventListener("pageshow", (event) => event.persisted && this.#checkConnection());
    document.addEventListener("visibilitychange", () => document.hidden || this.#checkConnection());
  }

  #handleOpen() {
    this.#clearAnswerTimeout();
    this.#timers.ping = setInterval(() => this.#ping(), this.#pace.ping);
    this.#setState("connected");
    this.onOpen();
  }

  #handleMessage(frame) {
    if (frame.op !== "pong") return this.onFrame(frame);
    this.#clearAnswerTimeout();
    this.resetRetryDelay();
  }

  #ping() {
    this.send({ type: "ping" });
    if (!this.#timers.answer) this.#startAnswerTimeout();
  }

  #startAnswerTimeout() {
    clearTimeout(this.#timers.answer);
    this.#timers.answer = setTimeout(() => this.reconnectLater(), ANSWER_TIMEOUT_MS);
  }

  #clearAnswerTimeout() {
    clearTimeout(this.#timers.answer);
    this.#timers.answer = 0;
  }

  #checkConnection() {
    if (this.state === "connected" && this.#socket.readyState !== WebSocket.OPEN) this.reconnectLater();
    else if (this.state === "connected") this.#ping();
    else this.#retryNow();
  }

  #handleClose(code) {
    const end = CLOSE_REASONS[code];
    if (!end) return this.reconnectLater();
    this.#release();
    this.#setState("closed", end);
  }

  #retryNow() {
    if (this.state === "connected" || this.state === "closed") return;
    this.#attempts = 0;
    this.connect();
  }

  #release() {
    this.onRelease();
    clearInterval(this.#timers.ping);
    this.#clearAnswerTimeout();
    const socket = this.#socket;
    this.#socket = null;
    socket?.close();
  }

  #setState(state, reason = "") {
    Object.assign(this, { state, reason });
    this.emit("state", { state, reason });
  }
}

// The socket of pages without a session. It reports changes of the session list ("parley:list-changed" on the
// document).

// Slow, because the list is also fetched at intervals.
const LIST_PACE = { ping: 30_000, first: 1_000, longest: 60_000 };

class ListSocket extends Socket {
  /** Refreshes the list, which may have changed since the page was rendered or while there was no connection. */
  onOpen() {
    reportListChange();
  }

  onFrame(frame) {
    this.resetRetryDelay();
    if (frame.op === "rail") reportListChange();
  }
}

const socket = new ListSocket("/ws/me", LIST_PACE);
const reportListChange = () => document.dispatchEvent(new Event("parley:list-changed"));

/** Connects the socket. It stays connected while the page is open and the user is signed in. */
export function connectListSocket() {
  socket.connect();
}

export const isListSocketConnected = () => socket.state === "connected";
