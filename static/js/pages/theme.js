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
  // A choice that the previous page of this tab made as it was left, which this page's HTML may lack.
  const takeLast = () => {
    try {
      const last = sessionStorage.getItem(KEY);
      sessionStorage.removeItem(KEY);
      return last;
    } catch {
      return null;
    }
  };
  // Taken on the sign-in page, too: it would be the theme of who signs in next.
  const last = takeLast();
  if (root.dataset.preferences) {
    show(last ?? root.dataset.theme);
    remember(root.dataset.theme ?? ""); // for the sign-in page
  } else show(last ?? read());
  addEventListener("storage", (event) => event.key === KEY && show(event.newValue));
  document.addEventListener("parley:theme", ({ detail }) => {
    show(detail);
    remember(detail);
  });
})();
