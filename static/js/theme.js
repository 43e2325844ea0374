// The theme that somebody chose, before the first paint. Without a choice the system's holds.
(() => {
  const KEY = "parley:theme";
  const root = document.documentElement;
  const read = () => {
    try {
      return localStorage.getItem(KEY) || "";
    } catch {
      return "";
    }
  };
  const show = (theme) => {
    if (theme === "light" || theme === "dark") root.dataset.theme = theme;
    else delete root.dataset.theme;
  };
  show(read());
  addEventListener("storage", (event) => event.key === KEY && show(event.newValue));
  document.addEventListener("click", (event) => {
    if (!event.target.closest?.("[data-action=theme]")) return;
    const next = { "": "light", light: "dark", dark: "" }[root.dataset.theme ?? ""];
    show(next);
    try {
      localStorage.setItem(KEY, next);
    } catch {
      // kept for this page only
    }
  });
})();
