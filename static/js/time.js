// Times in the reader's own zone (UI-02).

/** `14:30` today, `2/28 14:30` this year, `2025/12/31 14:30` before that. */
export function clock(date, now = new Date()) {
  const two = (number) => String(number).padStart(2, "0");
  const time = `${two(date.getHours())}:${two(date.getMinutes())}`;
  const day = `${date.getMonth() + 1}/${date.getDate()}`;
  if (date.getFullYear() !== now.getFullYear()) return `${date.getFullYear()}/${day} ${time}`;
  return day === `${now.getMonth() + 1}/${now.getDate()}` ? time : `${day} ${time}`;
}

/** Writes every <time> below a node in the reader's zone, with the full date on hover. */
export function localise(root) {
  for (const time of root.querySelectorAll("time[datetime]")) {
    const date = new Date(time.dateTime);
    if (Number.isNaN(date.getTime())) continue;
    const text = clock(date);
    if (time.textContent !== text) time.textContent = text;
    time.title = date.toLocaleString();
  }
}

/** Calls back soon after each midnight: what was "14:30" has become "2/28 14:30". */
export function atMidnight(callback) {
  const next = new Date();
  next.setHours(24, 0, 1, 0);
  setTimeout(() => {
    callback();
    atMidnight(callback);
  }, next - Date.now());
}
