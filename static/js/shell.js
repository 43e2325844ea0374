// Small states of the page's frame, as Alpine components: the drawer of sessions on phones, and the title.
import Alpine from "../vendor/alpine/module.esm.min.js";

/** Starts Alpine; `rename` is given a new title. */
export function start(rename) {
  Alpine.data("shell", shell);
  Alpine.data("title", () => title(rename));
  Alpine.start();
}

function shell() {
  return {
    isOpen: false,
    get classes() {
      return { "drawer-open": this.isOpen };
    },
    get expanded() {
      return String(this.isOpen);
    },
    open() {
      this.isOpen = true;
      this.$refs.main.inert = true;
      this.$nextTick(() => this.$refs.rail.querySelector("button").focus());
    },
    close() {
      if (!this.isOpen) return;
      this.isOpen = false;
      this.$refs.main.inert = false;
      this.$refs.opener.focus();
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
    cancel() {
      this.editing = false;
      this.$nextTick(() => this.$refs.button.focus());
    },
    save() {
      if (!this.editing) return;
      this.editing = false;
      const words = this.$refs.input.value.trim();
      if (words && words !== this.$refs.button.querySelector("[data-part]").textContent.trim()) rename(words);
    },
  };
}
