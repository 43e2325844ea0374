// For pages that show no session: a socket that says when the list of sessions has news ("parley:rail" on the document).

const ADDRESS = `${location.origin.replace(/^http/, "ws")}/ws/me`;
const SIGNED_OUT = 4401;
const PING_EVERY = 30_000;
const ANSWER_WITHIN = 10_000;
const FIRST_WAIT = 1_000;
const LONGEST_WAIT = 60_000;

let socket = null;
let tries = 0;
let over = false;
const timers = { retry: 0, ping: 0, answer: 0 };

/** Begins to listen, for as long as the page is open and somebody is signed in. */
export function ring() {
  addEventListener("online", connect);
  addEventListener("pageshow", (event) => event.persisted && connect());
  connect();
}

export const listening = () => socket?.readyState === WebSocket.OPEN;

const news = () => document.dispatchEvent(new Event("parley:rail"));

function connect() {
  if (over) return;
  release();
  const fresh = new WebSocket(ADDRESS);
  socket = fresh;
  expectAnswer(); // a connection that does not open in time is as good as none
  fresh.onopen = opened;
  fresh.onmessage = ({ data }) => fresh === socket && heard(JSON.parse(data));
  fresh.onclose = ({ code }) => fresh === socket && (code === SIGNED_OUT ? end() : lost());
}

function opened() {
  clearTimeout(timers.answer);
  news(); // whatever there was meanwhile, also since the page was made
  timers.ping = setInterval(() => {
    if (listening()) socket.send('{"type":"ping"}');
    expectAnswer();
  }, PING_EVERY);
}

function heard(frame) {
  clearTimeout(timers.answer);
  tries = 0;
  if (frame.op === "rail") news();
}

function expectAnswer() {
  clearTimeout(timers.answer);
  timers.answer = setTimeout(lost, ANSWER_WITHIN);
}

/** Calmly: the list looks by itself now and then, too. */
function lost() {
  release();
  const wait = Math.min(LONGEST_WAIT, FIRST_WAIT * 2 ** tries++) * (0.5 + Math.random() / 2);
  timers.retry = setTimeout(connect, wait);
}

function end() {
  over = true;
  release();
}

function release() {
  for (const timer of Object.values(timers)) clearTimeout(timer);
  const before = socket;
  socket = null;
  before?.close();
}
