// The session of the page: its socket and requests.
import { Socket } from "../net/socket.js";
import { words } from "../ui/i18n.js";
import { notice, settle } from "../ui/notice.js";

const ANSWER_WITHIN = 10_000;
const AGAIN_AFTER = 250;
// Commands that remove messages, and how long after the ack of one the page's own changes may still arrive.
const REMOVING = ["retry", "run_tools", "restore_attempt", "switch_attempt", "remove"];
const OWN_FOR = 3000;

/**
 * The session's socket, with repeated requests and revisions (LIVE-02, LIVE-04). Fires "frame" for each frame to be
 * applied, and "answer" for acks and refusals of commands sent by `send`. `have` returns the page's state of
 * each streaming message.
 */
class Live extends Socket {
  have = () => ({});
  #asked = new Map();
  #number = 0;
  #timer = 0; // of a sync
  #syncing = false;
  #asking = false; // a sync was sent, its answer has not started
  #again = false;
  #lowered = false; // the pending answer was requested with a later revision than the present one
  #removedAt = -Infinity; // when this page last asked to remove messages, or learned that it was done
  #known = false; // whether there was a connection before

  constructor(address, revision) {
    super(address);
    this.revision = revision;
  }

  /**
   * Sends a command and resolves to its ack; rejects with an Error whose message can be shown to the user.
   * Commands before the page's first connection wait for it.
   */
  async request(command) {
    if (this.state === "connecting")
      await new Promise((resolve) => this.addEventListener("state", resolve, { once: true }));
    const ref = `#${++this.#number}`;
    if (!this.send({ ref, ...command })) throw refusal("offline", this.#whyNot());
    const answer = new Promise((resolve, reject) => this.#asked.set(ref, { resolve, reject }));
    return REMOVING.includes(command.type) ? this.#removing(answer) : answer;
  }

  #whyNot() {
    if (this.reason === "no-access") return words.accessLost;
    if (this.state === "offline") return words.cannotLeave;
    return this.reason === "gone" ? words.goneNow : words.notDone;
  }

  /** Whether this page itself has just removed messages, so that its user needs no notice. */
  get isRemoving() {
    return performance.now() - this.#removedAt < OWN_FOR;
  }

  async #removing(answer) {
    this.#removedAt = Infinity;
    return answer.finally(() => (this.#removedAt = performance.now()));
  }

  /** Requests all changes since the page's revision, or `since` an earlier one; one request at a time. */
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
    if (!this.#asking) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.lost(), ANSWER_WITHIN);
  }

  opened() {
    this.#asking = this.#syncing = this.#again = this.#lowered = false;
    if (this.#known) document.dispatchEvent(new Event("parley:rail")); // changes were not reported without a connection
    this.#known = true;
    this.sync();
    this.emit("open");
  }

  released() {
    for (const { reject } of this.#asked.values()) reject(refusal("lost", words.answerLost));
    this.#asked.clear();
    clearTimeout(this.#timer);
  }

  received(frame) {
    if (frame.type) return this.#answered(frame);
    switch (frame.op) {
      case "resync":
        return this.sync();
      case "head":
        return frame.revision > this.revision ? this.sync() : undefined;
      case "rail": // the session list has changed
        return document.dispatchEvent(new CustomEvent("parley:rail", { detail: { own: frame.own } }));
      case "reload": // too much is missing to send it piece by piece
        return location.reload();
      case "syncing":
        this.#asking = false;
        this.#syncing = true;
        return;
      case "synced":
        return this.#synced(frame);
      default:
        if (this.#isNext(frame)) this.emit("frame", frame);
    }
  }

  #answered(answer) {
    const asked = this.#asked.get(answer.ref);
    if (!asked) return this.emit("answer", answer);
    this.#asked.delete(answer.ref);
    if (answer.type === "refused") asked.reject(Object.assign(refusal(answer.code, answer.message), answer));
    else asked.resolve(answer);
  }

  /** Applies the next revision, ignores known ones, and requests a sync if some are missing. */
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
    clearTimeout(this.#timer);
    this.proved();
    this.#asking = this.#syncing = false;
    if (!this.#lowered) this.revision = Math.max(this.revision, frame.revision);
    this.#lowered = false;
    this.emit("frame", frame);
    if (this.#again) this.#timer = setTimeout(() => this.sync(), AGAIN_AFTER);
  }
}

function refusal(code, message) {
  return Object.assign(new Error(message), { code });
}

export const page = document.getElementById("main");
export const canEdit = page.dataset.canEdit === "yes";
// Guests of the workspace can't choose models or create sessions.
export const isGuest = page.dataset.guest === "yes";
/** Whether this user can edit a message: one of a person only as its author or the owner. */
export const mayEdit = (message) => canEdit && (page.dataset.role === "owner" || !message.matches(".user:not(.mine)"));
const OWN_MENTION = `.mention[data-mentions~="${page.dataset.viewerId}"]`;
/** Returns the mentions of this user in a message. */
export const ownMentions = (message) => [...message.querySelectorAll(OWN_MENTION)];
export const live = new Live(page.dataset.socket, Number(page.dataset.revision));

/** Sends a command; resolves to its ack, or to null after a notice that it was refused. */
export async function ask(command) {
  try {
    const answer = await live.request(command);
    settle(command.type);
    return answer;
  } catch (refusal) {
    notice(refusal.message, { about: command.type });
    return null;
  }
}
