// The list of sections beside a long page.

/** Marks the section in view in the navigation: the last one whose top has been passed. */
export function showSection() {
  const links = [...document.querySelectorAll(".settings-nav a")];
  if (!links.length) return;
  let due = 0;
  const look = () => {
    due = 0;
    const isAtEnd = scrollY + innerHeight >= document.documentElement.scrollHeight - 2;
    const begun = links.filter(({ hash }) => document.querySelector(hash).getBoundingClientRect().top < 120);
    const present = (isAtEnd && scrollY > 0 ? links : begun).at(-1) ?? links[0];
    for (const link of links) {
      if (link !== present) link.removeAttribute("aria-current");
      else if (!link.hasAttribute("aria-current")) {
        link.setAttribute("aria-current", "true");
        link.parentElement.scrollLeft = link.offsetLeft - link.parentElement.offsetWidth / 3;
      }
    }
  };
  addEventListener("scroll", () => (due ||= requestAnimationFrame(look)), { passive: true });
  look();
}
