// Times in the user's time zone, with a 24-hour or 12-hour clock (UI-02).

const ZONE_COOKIE = "parley_zone";
const root = document.documentElement;
const twoDigits = (number) => String(number).padStart(2, "0");
const is12Hour = () => root.dataset.clock === "12";

/** Formats a time: `14:30` today, `2/28 14:30` this year, else `2025/12/31 14:30`. A 12-hour clock has `2:30 PM`. */
function formatTime(date, now = new Date()) {
  const time = formatClock(date);
  const day = `${date.getMonth() + 1}/${date.getDate()}`;
  if (date.getFullYear() !== now.getFullYear()) return `${date.getFullYear()}/${day} ${time}`;
  return day === `${now.getMonth() + 1}/${now.getDate()}` ? time : `${day} ${time}`;
}

/** Formats a time in the session list: `14:30` until yesterday, `Tue` this week, `28 Feb` this year, else `2025`. */
function formatForList(date, now = new Date()) {
  const days = (new Date(now).setHours(0, 0, 0, 0) - new Date(date).setHours(0, 0, 0, 0)) / 86_400_000;
  if (days < 1.5) return formatClock(date);
  if (days < 7.5) return dateFormatter({ weekday: "short" }).format(date);
  return dateFormatter(
    date.getFullYear() === now.getFullYear() ? { day: "numeric", month: "short" } : { year: "numeric" },
  ).format(date);
}

/** Returns the full date and time. */
export const formatFull = (date) => formatWithClock({ dateStyle: "full", timeStyle: "medium" }, date);

/** The formats by `data-form`. Without a form, `clock` is used. */
const FORMS = {
  day: (date) => dateFormatter({ dateStyle: "medium" }).format(date),
  full: formatFull,
  list: formatForList,
  medium: (date) => formatWithClock({ dateStyle: "medium", timeStyle: "short" }, date),
  seconds: (date) => formatWithClock({ dateStyle: "medium", timeStyle: "medium" }, date),
};

/**
 * Fills in every <time> below a node, in the user's time zone. `defaultForm` is the form of elements without data-form.
 */
export function localizeTimes(root, defaultForm = "") {
  for (const time of root.querySelectorAll("time[datetime]")) {
    const date = new Date(time.dateTime);
    if (Number.isNaN(date.getTime())) continue;
    const full = formatFull(date);
    const text = FORMS[time.dataset.form ?? defaultForm]?.(date) ?? formatTime(date);
    if (time.textContent !== text) time.textContent = text;
    time.title = full;
  }
}

/** Stores the time zone in a cookie, because the server groups lists by day. Returns {zone, isNew}. */
export function storeTimeZone() {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone ?? "UTC";
  const cookie = `${ZONE_COOKIE}=${zone}`;
  const isNew = !document.cookie.split("; ").includes(cookie);
  if (isNew) document.cookie = `${cookie}; path=/; max-age=31536000; samesite=lax`;
  return { zone, isNew };
}

/** Calls back soon after each midnight, when "14:30" becomes "2/28 14:30". */
export function onMidnight(callback) {
  let day = new Date().toDateString();
  const checkDay = () => {
    if (new Date().toDateString() === day) return;
    day = new Date().toDateString();
    callback();
  };
  const waitForMidnight = () =>
    setTimeout(() => (checkDay(), waitForMidnight()), new Date().setHours(24, 0, 1, 0) - Date.now());
  waitForMidnight();
  document.addEventListener("visibilitychange", checkDay); // timers stop while a machine sleeps
}

// `hour12: false` would write midnight as 24:00 in English.
function formatWithClock(options, date) {
  return dateFormatter({ ...options, hourCycle: is12Hour() ? "h12" : "h23" }).format(date);
}

function formatClock(date) {
  if (is12Hour()) return dateFormatter({ hour: "numeric", minute: "2-digit", hour12: true }).format(date);
  return `${twoDigits(date.getHours())}:${twoDigits(date.getMinutes())}`;
}

const formatters = new Map();

/** Returns a formatter. Formatters are cached, because creating one is expensive. */
export function dateFormatter(options) {
  const name = JSON.stringify(options);
  if (!formatters.has(name)) formatters.set(name, new Intl.DateTimeFormat(root.lang, options));
  return formatters.get(name);
}
