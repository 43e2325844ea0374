// Modules that come when they are first needed, and may not come.
import { toast } from "./toast.js";
import { words } from "./words.js";

/** Resolves to a module (`load` imports it), or to null after saying that it did not come. */
export async function late(load) {
  try {
    return await load();
  } catch {
    toast(words.notLoaded);
    return null;
  }
}
