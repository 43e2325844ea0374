// The reader's place: at the end it follows what comes, anywhere else it is never taken away.

const NEAR = 40;
const log = document.getElementById("log");
const button = document.querySelector("[data-action=latest]");
let following = true;
let lastTop = 0;

const distance = () => log.scrollHeight - log.scrollTop - log.clientHeight;

/** Goes to the end and follows it again. */
export function toEnd() {
  following = true;
  button.hidden = true;
  log.scrollTop = log.scrollHeight;
  lastTop = log.scrollTop;
}

/** Call after the list has changed. */
export function keepPlace() {
  if (following) toEnd();
}

export function start() {
  toEnd();
  log.dataset.ready = "";
  log.addEventListener("scroll", moved, { passive: true });
  button.addEventListener("click", () => {
    toEnd();
    log.focus({ preventScroll: true });
  });
  log.addEventListener("click", opened);
  // Messages get their true height only when they come into view, so the end moves by itself too.
  const observer = new ResizeObserver(keepPlace);
  for (const element of [log, ...log.children]) observer.observe(element);
  keepWhileOlderLoad();
}

function moved() {
  // Growth below never moves the reader up; only the reader does.
  if (distance() < NEAR) following = true;
  else if (log.scrollTop < lastTop - 1) following = false;
  button.hidden = following || distance() < 2 * NEAR;
  lastTop = log.scrollTop;
}

/** Whoever opens something wants to see it, not what is below it. */
function opened(event) {
  if (!event.target.closest("summary, [data-action=expand]")) return;
  following = false;
  requestAnimationFrame(moved);
}

function keepWhileOlderLoad() {
  let anchor = null;
  let top = 0;
  const isOlder = (event) => event.detail.ctx.target?.id === "messages";
  const restore = () => {
    if (anchor) log.scrollTop += anchor.getBoundingClientRect().top - top;
  };
  document.addEventListener("htmx:before:swap", (event) => {
    if (!isOlder(event)) return;
    anchor = firstVisible();
    top = anchor?.getBoundingClientRect().top ?? 0;
    log.classList.add("holding");
  });
  document.addEventListener("htmx:after:swap", (event) => {
    if (!isOlder(event)) return;
    restore();
    // Again while the new messages get their true height, which takes a few frames.
    let frames = 3;
    const settle = () => {
      restore();
      if (frames--) return requestAnimationFrame(settle);
      anchor = null;
      log.classList.remove("holding");
      lastTop = log.scrollTop;
    };
    requestAnimationFrame(settle);
  });
}

function firstVisible() {
  const edge = log.getBoundingClientRect().top;
  const messages = [...document.getElementById("messages").children];
  return messages.find((message) => message.getBoundingClientRect().bottom > edge);
}
