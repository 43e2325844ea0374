// Sets the theme before the first paint: that of the account, or that of the browser for signed-out users.
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
      // without the storage, the theme applies to this page only
    }
  };
  const show = (theme) => {
    if (theme === "light" || theme === "dark") root.dataset.theme = theme;
    else delete root.dataset.theme;
  };
  // Returns the theme that the user chose just before leaving the previous page. This page's HTML may not have it yet.
  const takeFromLastPage = () => {
    try {
      const last = sessionStorage.getItem(KEY);
      sessionStorage.removeItem(KEY);
      return last;
    } catch {
      return null;
    }
  };
  // The choice is also removed on the sign-in page. Otherwise the next user who signs in would get it.
  const last = takeFromLastPage();
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
