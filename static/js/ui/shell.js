// Alpine components of the page's frame: the session list (a drawer on phones) and the title.
import Alpine from "../../vendor/alpine/module.esm.min.js";
import { isBehind, offer, PHONE, ready, withControl } from "./commands.js";
import { composing } from "./field.js";
import { words } from "./i18n.js";

// The height above an on-screen keyboard: some browsers lay it over the page instead of making the page smaller.

const view = window.visualViewport;
const root = document.documentElement;

/** Ignores pinch zoom, which makes the page larger than the visible part. */
function fit() {
  const covered = view.scale === 1 && root.clientHeight - view.height > 1;
  if (!covered) return root.style.removeProperty("--room");
  root.style.setProperty("--room", `${view.height}px`);
  scrollTo(0, 0); // the browser has pushed the page up to show the field
}

function connectRoom() {
  view?.addEventListener("resize", fit);
}

const FOLDED = "parley_rail";

function shell() {
  return {
    isOpen: false,
    isFolded: document.cookie.split("; ").includes(`${FOLDED}=folded`),
    get classes() {
      return { "drawer-open": this.isOpen, "rail-folded": this.isFolded };
    },
    get expanded() {
      return String(this.isOpen);
    },
    get unfolded() {
      return String(!this.isFolded);
    },
    init() {
      addEventListener("keydown", (event) => {
        if (!withControl(event) || event.shiftKey || isBehind() || event.key.toLowerCase() !== "b") return;
        event.preventDefault();
        this.toggle();
      });
      PHONE.addEventListener("change", () => this.close()); // a wide page has no drawer
      offer({ id: "rail", label: words.showList, icon: "panel-left", keys: "Ctrl+B", run: () => this.toggle() });
    },
    toggle() {
      if (!PHONE.matches) this.fold();
      else if (this.isOpen) this.close();
      else this.open();
    },
    /** Escape closes the topmost element. */
    escape(event) {
      if (!event.defaultPrevented && !isBehind()) this.close();
    },
    open() {
      this.isOpen = true;
      this.$refs.main.inert = true;
      this.$nextTick(() => this.$refs.rail.querySelector("button:not(.phone-none)").focus());
    },
    close() {
      if (!this.isOpen) return;
      this.isOpen = false;
      this.$refs.main.inert = false;
      this.$refs.opener.focus();
    },
    fold() {
      this.isFolded = !this.isFolded;
      document.cookie = `${FOLDED}=${this.isFolded ? "folded" : ""}; path=/; max-age=31536000; samesite=lax`;
    },
  };
}

function title(rename) {
  return {
    editing: false,
    get reading() {
      return !this.editing;
    },
    edit() {
      this.editing = true;
      this.$refs.input.value = this.$refs.button.querySelector("[data-part]").textContent.trim();
      this.$nextTick(() => this.$refs.input.select());
    },
    cancel(event) {
      if (composing(event)) return;
      this.editing = false;
      this.$nextTick(() => this.$refs.button.focus());
    },
    save() {
      if (!this.editing) return;
      this.editing = false;
      const title = this.$refs.input.value.trim();
      if (document.activeElement === this.$refs.input) this.$nextTick(() => this.$refs.button.focus());
      if (title && title !== this.$refs.button.querySelector("[data-part]").textContent.trim()) rename(title);
    },
  };
}

/** Starts Alpine after everything else is connected; `rename` is called with a new title. */
export function connect(rename = () => {}) {
  connectRoom();
  Alpine.data("shell", shell);
  Alpine.data("title", () => title(rename));
  Alpine.start();
  ready();
}
