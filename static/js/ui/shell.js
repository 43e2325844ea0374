// Alpine components around the page's content: the session list (a drawer on phones) and the title.
import Alpine from "../../vendor/alpine/module.esm.min.js";
import { addCommand, hasControl, isDialogOpen, PHONE, reportReady } from "./commands.js";
import { isComposing } from "./field.js";
import { words } from "./i18n.js";

// Some browsers lay the on-screen keyboard over the page instead of making the page smaller.

const viewport = window.visualViewport;
const root = document.documentElement;

/** Fits the page to the visible height. Ignores pinch zoom, which makes the page larger than the visible part. */
function fitToVisibleHeight() {
  const covered = viewport.scale === 1 && root.clientHeight - viewport.height > 1;
  if (!covered) return root.style.removeProperty("--room");
  root.style.setProperty("--room", `${viewport.height}px`);
  scrollTo(0, 0); // the browser has pushed the page up to show the field
}

function connectKeyboardInset() {
  viewport?.addEventListener("resize", fitToVisibleHeight);
}

const FOLDED_COOKIE = "parley_rail"; // the name of earlier releases

function shell() {
  return {
    isOpen: false,
    isFolded: document.cookie.split("; ").includes(`${FOLDED_COOKIE}=folded`),
    get classes() {
      return { "drawer-open": this.isOpen, "sidebar-folded": this.isFolded };
    },
    get expanded() {
      return String(this.isOpen);
    },
    get unfolded() {
      return String(!this.isFolded);
    },
    init() {
      addEventListener("keydown", (event) => {
        if (!hasControl(event) || event.shiftKey || isDialogOpen() || event.key.toLowerCase() !== "b") return;
        event.preventDefault();
        this.toggle();
      });
      PHONE.addEventListener("change", () => this.close()); // a wide page has no drawer
      addCommand({
        id: "sidebar",
        label: words.showList,
        icon: "panel-left",
        keys: "Ctrl+B",
        run: () => this.toggle(),
      });
    },
    toggle() {
      if (!PHONE.matches) this.fold();
      else if (this.isOpen) this.close();
      else this.open();
    },
    /** Closes the list on Escape, unless a dialog or another element has handled the key. */
    escape(event) {
      if (!event.defaultPrevented && !isDialogOpen()) this.close();
    },
    open() {
      this.isOpen = true;
      this.$refs.main.inert = true;
      this.$nextTick(() => this.$refs.sidebar.querySelector("button:not(.phone-none)").focus());
    },
    close() {
      if (!this.isOpen) return;
      this.isOpen = false;
      this.$refs.main.inert = false;
      this.$refs.opener.focus();
    },
    fold() {
      this.isFolded = !this.isFolded;
      document.cookie = `${FOLDED_COOKIE}=${this.isFolded ? "folded" : ""}; path=/; max-age=31536000; samesite=lax`;
    },
  };
}

/** The elements have x-show.immediate, because Alpine otherwise shows them a frame later, too late for the focus. */
function title(rename) {
  return {
    editing: false,
    before: "", // the shown title when the field was opened
    problem: "", // the reason why the title `refused` was refused
    refused: "",
    get reading() {
      return !this.editing;
    },
    get invalid() {
      return this.problem ? "true" : null;
    },
    edit() {
      this.before = this.shown();
      this.open(this.before);
      this.$nextTick(() => this.$refs.input.select());
    },
    open(text, problem = "") {
      this.editing = true;
      this.refused = text;
      this.problem = problem;
      this.$refs.input.value = text;
    },
    shown() {
      return this.$refs.button.querySelector("[data-part]").textContent.trim();
    },
    cancel(event) {
      if (isComposing(event)) return;
      this.editing = false;
      this.$nextTick(() => this.$refs.button.focus());
    },
    /** Leaving the field neither sends a refused title again nor discards it. */
    leave() {
      if (!this.problem || this.$refs.input.value !== this.refused) this.save();
    },
    async save() {
      if (!this.editing) return;
      this.editing = false;
      const title = this.$refs.input.value.trim();
      const hadFocus = document.activeElement === this.$refs.input;
      if (hadFocus) {
        await this.$nextTick(); // move the focus before a quick refusal moves it back
        this.$refs.button.focus();
      }
      // Another user may have changed the title while the field was open.
      if (["", this.before, this.shown()].includes(title)) return;
      const problem = await rename(title);
      if (!problem) return;
      if (this.editing) return (this.problem = problem); // another title is being written
      const isHere = hadFocus && [this.$refs.button, document.body].includes(document.activeElement);
      this.open(title, problem);
      if (isHere) this.$nextTick(() => this.$refs.input.focus());
    },
  };
}

/** Starts Alpine. Call it last. `rename` is called with a new title, and resolves to a text if the title is refused. */
export function connect(rename = () => {}) {
  connectKeyboardInset();
  Alpine.data("shell", shell);
  Alpine.data("title", () => title(rename));
  Alpine.start();
  reportReady();
}
