// The session of the page: its socket and requests.
import { Socket } from "../net/socket.js";
import { words } from "../ui/i18n.js";
import { clearNoticeAfterSuccess, showNotice } from "../ui/notice.js";

const ANSWER_TIMEOUT_MS = 10_000;
const RESYNC_DELAY_MS = 250;
// Commands that remove messages, and how long after an ack, in ms, the resulting changes can still arrive.
const REMOVING_COMMANDS = ["retry", "run_tools", "restore_attempt", "switch_attempt", "remove"];
const OWN_REMOVAL_MS = 3000;

/**
 * The session's socket, which repeats requests and checks revisions (LIVE-02, LIVE-04). Fires "frame" for each frame to
 * apply, and "answer" for acks and refusals of commands sent by `send`. `have` returns the page's state of each
 * streaming message.
 */
class SessionSocket extends Socket {
  have = () => ({});
  #requests = new Map();
  #lastNumber = 0;
  #syncTimer = 0; // the timer of the next sync
  #isSyncing = false;
  #isSyncRequested = false; // a sync is requested, but the response has not begun
  #isResyncNeeded = false;
  #isRevisionLowered = false; // the pending sync was requested before the revision was lowered
  #removedAt = -Infinity; // when this page last requested the removal of messages, or got the ack
  #isListStale = true; // changes of the session list were not reported, because the page was not connected

  constructor(address, revision) {
    super(address);
    this.revision = revision;
  }

  /**
   * Sends a command and resolves to its ack, or rejects with an Error whose message can be shown to the user.
   * Waits for the page's first connection.
   */
  async request(command) {
    if (this.state === "connecting")
      await new Promise((resolve) => this.addEventListener("state", resolve, { once: true }));
    const ref = `#${++this.#lastNumber}`;
    if (!this.send({ ref, ...command })) throw createRefusal("offline", this.#offlineReason());
    const answer = new Promise((resolve, reject) => this.#requests.set(ref, { resolve, reject }));
    return REMOVING_COMMANDS.includes(command.type) ? this.#trackRemoval(answer) : answer;
  }

  #offlineReason() {
    if (this.reason === "no-access") return words.accessLost;
    if (this.state === "offline") return words.cannotLeave;
    return this.reason === "gone" ? words.goneNow : words.notDone;
  }

  /** Returns whether this page has just removed messages. The user then needs no toast about removed messages. */
  get isRemoving() {
    return performance.now() - this.#removedAt < OWN_REMOVAL_MS;
  }

  async #trackRemoval(answer) {
    this.#removedAt = Infinity;
    return answer.finally(() => (this.#removedAt = performance.now()));
  }

  /** Requests all changes since the page's revision, or `since` an earlier one. Sends one request at a time. */
  sync(since = this.revision) {
    if (since < this.revision) {
      this.revision = since;
      this.#isRevisionLowered = this.#isSyncRequested || this.#isSyncing;
    }
    if (this.#isSyncRequested || this.#isSyncing) {
      this.#isResyncNeeded = true;
      return;
    }
    this.#isResyncNeeded = false;
    this.#isSyncRequested = this.send({ type: "sync", since: this.revision, have: this.have() });
    if (!this.#isSyncRequested) return;
    clearTimeout(this.#syncTimer);
    this.#syncTimer = setTimeout(() => this.reconnectLater(), ANSWER_TIMEOUT_MS);
  }

  onOpen() {
    this.#isSyncRequested = this.#isSyncing = this.#isResyncNeeded = this.#isRevisionLowered = false;
    this.#isListStale = true;
    this.sync();
    this.emit("open");
  }

  onRelease() {
    for (const { reject } of this.#requests.values()) reject(createRefusal("lost", words.answerLost));
    this.#requests.clear();
    clearTimeout(this.#syncTimer);
  }

  onFrame(frame) {
    if (frame.type) return this.#handleAnswer(frame);
    switch (frame.op) {
      case "resync":
        return this.sync();
      case "head":
        return frame.revision > this.revision ? this.sync() : undefined;
      case "rail": // the session list has changed
        return document.dispatchEvent(new CustomEvent("parley:list-changed", { detail: { own: frame.own } }));
      case "reload": // too many changes are missing
        return location.reload();
      case "syncing":
        this.#isSyncRequested = false;
        this.#isSyncing = true;
        return;
      case "synced":
        return this.#handleSynced(frame);
      default:
        if (this.#acceptRevision(frame)) this.emit("frame", frame);
    }
  }

  #handleAnswer(answer) {
    const request = this.#requests.get(answer.ref);
    if (!request) return this.emit("answer", answer);
    this.#requests.delete(answer.ref);
    if (answer.type === "refused") request.reject(Object.assign(createRefusal(answer.code, answer.message), answer));
    else request.resolve(answer);
  }

  /**
   * Returns whether to apply a frame: not one of a known revision. Requests a sync if earlier revisions are missing.
   */
  #acceptRevision(frame) {
    const revision = frame.revision ?? null;
    if (revision === null || this.#isSyncing) return true;
    if (revision <= this.revision) return false;
    if (revision > this.revision + 1) {
      this.sync();
      return false;
    }
    this.revision = revision;
    return true;
  }

  #handleSynced(frame) {
    clearTimeout(this.#syncTimer);
    this.resetRetryDelay();
    this.#isSyncRequested = this.#isSyncing = false;
    if (!this.#isRevisionLowered) this.revision = Math.max(this.revision, frame.revision);
    this.#isRevisionLowered = false;
    this.emit("frame", frame);
    // Only now is it certain that the socket is subscribed to changes of the session list. Earlier ones may be missing.
    if (this.#isListStale) document.dispatchEvent(new Event("parley:list-changed"));
    this.#isListStale = false;
    if (this.#isResyncNeeded) this.#syncTimer = setTimeout(() => this.sync(), RESYNC_DELAY_MS);
  }
}

function createRefusal(code, message) {
  return Object.assign(new Error(message), { code });
}

export const page = document.getElementById("main");
/** Returns the title of the session that the page shows. */
export const shownTitle = () => page.querySelector("[data-part=title]").textContent.trim();
export const canEdit = page.dataset.canEdit === "yes";
/** Returns whether an id is that of the user. */
export const isMe = (id) => String(id) === page.dataset.viewerId;
// Guests of the workspace can't choose models or create sessions.
export const isGuest = page.dataset.guest === "yes";
/** Returns whether this user can edit a message. Users' messages can be edited only by their authors and the owner. */
export const mayEdit = (message) => canEdit && (page.dataset.role === "owner" || !message.matches(".user:not(.mine)"));
const OWN_MENTION = `.mention[data-mentions~="${page.dataset.viewerId}"]`;
/** Returns the mentions of this user in a message. */
export const ownMentions = (message) => [...message.querySelectorAll(OWN_MENTION)];
export const live = new SessionSocket(page.dataset.socket, Number(page.dataset.revision));

/** Sends a command and resolves to its ack, or after a notice to null if it was refused. */
export async function sendCommand(command) {
  try {
    const answer = await live.request(command);
    clearNoticeAfterSuccess(command.type);
    return answer;
  } catch (refusal) {
    showNotice(refusal.message, { about: command.type });
    return null;
  }
}
