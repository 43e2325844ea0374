// Times in the user's time zone, with a 24-hour or 12-hour clock (UI-02).

const ZONE = "parley_zone";
const root = document.documentElement;
const two = (number) => String(number).padStart(2, "0");
const isTwelve = () => root.dataset.clock === "12";

/** `14:30` today, `2/28 14:30` this year, `2025/12/31 14:30` before that; `2:30 PM` with a 12-hour clock. */
function clock(date, now = new Date()) {
  const time = timeOf(date);
  const day = `${date.getMonth() + 1}/${date.getDate()}`;
  if (date.getFullYear() !== now.getFullYear()) return `${date.getFullYear()}/${day} ${time}`;
  return day === `${now.getMonth() + 1}/${now.getDate()}` ? time : `${day} ${time}`;
}

/** As in the list of sessions, below headings for days: `14:30` today and yesterday, `Tue` this week, `28 Feb`, `2025`. */
function inList(date, now = new Date()) {
  const days = (new Date(now).setHours(0, 0, 0, 0) - new Date(date).setHours(0, 0, 0, 0)) / 86_400_000;
  if (days < 1.5) return timeOf(date);
  if (days < 7.5) return formatter({ weekday: "short" }).format(date);
  return formatter(
    date.getFullYear() === now.getFullYear() ? { day: "numeric", month: "short" } : { year: "numeric" },
  ).format(date);
}

/** Returns the full date and time. */
export const fullTime = (date) => dated({ dateStyle: "full", timeStyle: "medium" }, date);

/** The formats by `data-form`; without one, `clock`. */
const FORMS = {
  day: (date) => formatter({ dateStyle: "medium" }).format(date),
  full: fullTime,
  list: inList,
  medium: (date) => dated({ dateStyle: "medium", timeStyle: "short" }, date),
  seconds: (date) => dated({ dateStyle: "medium", timeStyle: "medium" }, date),
};

/** Fills every <time> below a node in the user's time zone, with the full date on hover; `usual` is for those without a form. */
export function localise(root, usual = "") {
  for (const time of root.querySelectorAll("time[datetime]")) {
    const date = new Date(time.dateTime);
    if (Number.isNaN(date.getTime())) continue;
    const full = fullTime(date);
    const text = FORMS[time.dataset.form ?? usual]?.(date) ?? clock(date);
    if (time.textContent !== text) time.textContent = text;
    time.title = full;
  }
}

/** Sends the user's time zone to the server, which groups lists by day; returns whether it is new there. */
export function tellZone() {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone ?? "UTC";
  const cookie = `${ZONE}=${zone}`;
  const isNew = !document.cookie.split("; ").includes(cookie);
  if (isNew) document.cookie = `${cookie}; path=/; max-age=31536000; samesite=lax`;
  return { zone, isNew };
}

/** Calls back soon after each midnight, when "14:30" becomes "2/28 14:30". */
export function atMidnight(callback) {
  let day = new Date().toDateString();
  const look = () => {
    if (new Date().toDateString() === day) return;
    day = new Date().toDateString();
    callback();
  };
  const wait = () => setTimeout(() => (look(), wait()), new Date().setHours(24, 0, 1, 0) - Date.now());
  wait();
  document.addEventListener("visibilitychange", look); // timers stop while a machine sleeps
}

// `hour12: false` would write midnight as 24:00 in English.
function dated(options, date) {
  return formatter({ ...options, hourCycle: isTwelve() ? "h12" : "h23" }).format(date);
}

function timeOf(date) {
  if (isTwelve()) return formatter({ hour: "numeric", minute: "2-digit", hour12: true }).format(date);
  return `${two(date.getHours())}:${two(date.getMinutes())}`;
}

const formatters = new Map();

/** Cached: creating a formatter costs more than all of its use. */
export function formatter(options) {
  const name = JSON.stringify(options);
  if (!formatters.has(name)) formatters.set(name, new Intl.DateTimeFormat(root.lang, options));
  return formatters.get(name);
}
