// The page's socket: connecting again, asking again, and the rule of revisions (LIVE-02, LIVE-04).

const PING_EVERY = 20_000;
const ANSWER_WITHIN = 10_000;
const LONGEST_WAIT = 15_000;
const FINAL = { 4401: "signed-out", 4403: "no-access", 4404: "gone" };

/**
 * Fires "state" (connecting, connected, reconnecting, offline, closed), "frame" for each frame that is to be applied,
 * and "answer" for the acks and refusals of what was sent by `send`. `have` tells what the page holds of each
 * streaming message.
 */
export class Live extends EventTarget {
  have = () => ({});
  #address;
  #refusals;
  #asked = new Map();
  #number = 0;
  #socket = null;
  #tries = 0;
  #timers = { retry: 0, ping: 0, pong: 0, sync: 0 };
  #syncing = false;
  #asking = false; // a sync is on its way, its answer has not begun
  #again = false;
  #isListening = false;
  #lowered = false; // the answer that is on its way was asked for with a later revision than ours is now
  #known = false; // there was a connection before

  /** `refusals` has the words for a command without a connection (`offline`) and for one without an answer (`lost`). */
  constructor(address, revision, refusals) {
    super();
    this.#address = address;
    this.#refusals = refusals;
    this.revision = revision;
    this.state = "connecting";
  }

  connect() {
    if (!this.#isListening) this.#listen();
    clearTimeout(this.#timers.retry);
    this.#release();
    const socket = new WebSocket(this.#address);
    this.#socket = socket;
    socket.onopen = () => this.#opened();
    socket.onmessage = (event) => socket === this.#socket && this.#received(JSON.parse(event.data));
    socket.onclose = (event) => socket === this.#socket && this.#closed(event.code);
    this.#expect("pong", ANSWER_WITHIN); // a connection that does not open in time is as good as none
  }

  /** Sends a command; false when there is no connection, or it is just ending. */
  send(command) {
    if (this.state !== "connected" || this.#socket.readyState !== WebSocket.OPEN) return false;
    this.#socket.send(JSON.stringify(command));
    return true;
  }

  /**
   * Sends a command and resolves to its ack; rejects with an Error that says, to a person, why nothing came of it.
   * What is asked before the page's first connection stands waits for that.
   */
  async request(command) {
    if (this.state === "connecting") await new Promise((resolve) => this.addEventListener("state", resolve, { once: true }));
    const ref = `#${++this.#number}`;
    if (!this.send({ ...command, ref })) throw refusal("offline", this.#refusals.offline);
    return new Promise((resolve, reject) => this.#asked.set(ref, { resolve, reject }));
  }

  /** Asks for all that this page lacks, or may lack `since` an earlier revision; one question at a time. */
  sync(since = this.revision) {
    if (since < this.revision) {
      this.revision = since;
      this.#lowered = this.#asking || this.#syncing;
    }
    if (this.#asking || this.#syncing) {
      this.#again = true;
      return;
    }
    this.#again = false;
    this.#asking = this.send({ type: "sync", since: this.revision, have: this.have() });
    if (this.#asking) this.#expect("sync", ANSWER_WITHIN);
  }

  #listen() {
    this.#isListening = true;
    addEventListener("online", () => this.#retryNow());
    addEventListener("offline", () => this.#lost());
    addEventListener("pageshow", (event) => event.persisted && this.#looksAlive());
    document.addEventListener("visibilitychange", () => document.hidden || this.#looksAlive());
  }

  #opened() {
    this.#heard();
    this.#asking = this.#syncing = this.#again = this.#lowered = false;
    this.#timers.ping = setInterval(() => this.#ping(), PING_EVERY);
    this.#become("connected");
    if (this.#known) document.dispatchEvent(new Event("parley:rail")); // nobody rang while the page was away
    this.#known = true;
    this.sync();
    this.dispatchEvent(new Event("open"));
  }

  #received(frame) {
    if (frame.type) return this.#answered(frame);
    switch (frame.op) {
      case "pong":
        return this.#heard();
      case "resync":
        return this.sync();
      case "head":
        return frame.revision > this.revision ? this.sync() : undefined;
      case "rail": // the list of sessions has news
        return document.dispatchEvent(new Event("parley:rail"));
      case "reload": // more is missing than is worth sending piece by piece
        return location.reload();
      case "syncing":
        this.#asking = false;
        this.#syncing = true;
        return;
      case "synced":
        return this.#synced(frame);
      default:
        if (this.#isNext(frame)) this.#emit("frame", frame);
    }
  }

  #answered(answer) {
    const asked = this.#asked.get(answer.ref);
    if (!asked) return this.#emit("answer", answer);
    this.#asked.delete(answer.ref);
    if (answer.type === "refused") asked.reject(Object.assign(refusal(answer.code, answer.message), answer));
    else asked.resolve(answer);
  }

  /** The rule of revisions: the next one is applied, older ones are known, a greater one shows that some are missing. */
  #isNext(frame) {
    const revision = frame.revision ?? null;
    if (revision === null || this.#syncing) return true;
    if (revision <= this.revision) return false;
    if (revision > this.revision + 1) {
      this.sync();
      return false;
    }
    this.revision = revision;
    return true;
  }

  #synced(frame) {
    clearTimeout(this.#timers.sync);
    this.#tries = 0;
    this.#asking = this.#syncing = false;
    if (!this.#lowered) this.revision = Math.max(this.revision, frame.revision);
    this.#lowered = false;
    this.#emit("frame", frame);
    if (this.#again) this.#timers.sync = setTimeout(() => this.sync(), 250);
  }

  #ping() {
    this.send({ type: "ping" });
    if (!this.#timers.pong) this.#expect("pong", ANSWER_WITHIN);
  }

  #heard() {
    clearTimeout(this.#timers.pong);
    this.#timers.pong = 0;
  }

  #looksAlive() {
    if (this.state === "connected" && this.#socket.readyState !== WebSocket.OPEN) this.#lost();
    else if (this.state === "connected") this.#ping();
    else this.#retryNow();
  }

  #expect(what, within) {
    clearTimeout(this.#timers[what]);
    this.#timers[what] = setTimeout(() => this.#lost(), within);
  }

  #closed(code) {
    const end = FINAL[code];
    if (!end) return this.#lost();
    this.#release();
    this.#become("closed", end);
  }

  /** The connection is gone or as good as gone: try again, more slowly each time, not all pages at once. */
  #lost() {
    if (this.state === "closed") return;
    this.#release();
    this.#become(navigator.onLine ? "reconnecting" : "offline");
    const wait = Math.min(LONGEST_WAIT, 300 * 2 ** this.#tries++) * (0.5 + Math.random() / 2);
    clearTimeout(this.#timers.retry);
    this.#timers.retry = setTimeout(() => this.connect(), wait);
  }

  #retryNow() {
    if (this.state === "connected" || this.state === "closed") return;
    this.#tries = 0;
    this.connect();
  }

  #release() {
    for (const { reject } of this.#asked.values()) reject(refusal("lost", this.#refusals.lost));
    this.#asked.clear();
    clearInterval(this.#timers.ping);
    clearTimeout(this.#timers.sync);
    this.#heard();
    const socket = this.#socket;
    this.#socket = null;
    socket?.close();
  }

  #become(state, reason = "") {
    this.state = state;
    this.#emit("state", { state, reason });
  }

  #emit(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }
}

function refusal(code, message) {
  return Object.assign(new Error(message), { code });
}
