// Sets the theme before the first paint: the account's, or else this browser's.
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
  const remember = (theme) => {
    try {
      localStorage.setItem(KEY, theme);
    } catch {
      // applies to this page only
    }
  };
  const show = (theme) => {
    if (theme === "light" || theme === "dark") root.dataset.theme = theme;
    else delete root.dataset.theme;
  };
  if (root.dataset.preferences)
    remember(root.dataset.theme ?? ""); // for the sign-in page
  else show(read());
  addEventListener("storage", (event) => event.key === KEY && show(event.newValue));
  document.addEventListener("parley:theme", ({ detail }) => {
    show(detail);
    remember(detail);
  });
})();
