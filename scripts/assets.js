// Builds static/dist/: the scripts and style sheets that pages load, and a manifest of them for chat/assets/built.py.
// With --check it writes nothing, and fails when static/dist/ is not what it would write.
import { build } from "esbuild";
import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { basename, join, parse, posix } from "node:path";
import { fileURLToPath } from "node:url";

const STATIC = fileURLToPath(new URL("../static", import.meta.url));
const DIST = join(STATIC, "dist");
const MODULES = [
  "js/pages/session.js",
  "js/pages/home.js",
  "js/pages/guest_home.js",
  "js/pages/settings.js",
  "js/pages/knowledge.js",
  "js/pages/passkey.js",
  "admin/js/page.js",
  "admin/js/session.js",
  "admin/js/unsaved.js",
];
// They are no modules: they run before the page is shown, or in a frame without an origin, which can't load modules.
const SCRIPTS = ["js/pages/theme.js", "js/pages/early.js", "js/pages/diagram_frame.js"];
const STYLES = [
  "css/all.css",
  "css/late.css",
  "css/home.css",
  "css/settings.css",
  "css/reference.css",
  "admin/css/parley/all.css",
  "admin/css/parley/session.css",
];
const OPTIONS = {
  absWorkingDir: STATIC,
  outdir: DIST,
  bundle: true,
  minify: true,
  // The first versions that have light-dark(), which the styles need.
  target: ["chrome123", "firefox120", "safari17.5"],
  external: [join(STATIC, "vendor/*"), join(STATIC, "*.svg")],
  legalComments: "none",
  metafile: true,
  write: false,
  logLevel: "warning",
};

const nameOf = (source) => (source.startsWith("admin/") ? "admin-" : "") + parse(source).name;

/**
 * What a page imports later also imports the page itself. So all that the page needs at first is needed by the same files,
 * and esbuild puts it into one chunk, not into one for each combination of importers.
 */
function afterPage(page) {
  return {
    name: "after-page",
    setup({ onResolve, onLoad }) {
      onResolve({ filter: /^\./ }, ({ kind, path, resolveDir }) => {
        if (kind !== "dynamic-import") return undefined;
        return { path: posix.join(posix.relative(STATIC, resolveDir), path), namespace: "late" };
      });
      onLoad({ filter: /./, namespace: "late" }, ({ path }) => ({
        contents: `import "./${page}"; export * from "./${path}";`,
        resolveDir: STATIC,
      }));
    },
  };
}

/** Builds one page by itself: the chunks that pages would share are many and small. */
function buildModule(source) {
  const name = nameOf(source);
  return build({
    ...OPTIONS,
    entryPoints: [{ in: source, out: name }],
    format: "esm",
    splitting: true,
    chunkNames: `${name}-[name]-[hash]`,
    plugins: [afterPage(source)],
  });
}

function buildOthers(sources, options) {
  return build({ ...OPTIONS, ...options, entryPoints: sources.map((source) => ({ in: source, out: nameOf(source) })) });
}

/** Returns the file that has a source, and what a browser can fetch at once with it. */
function described(source, outputs) {
  const chunk = Object.entries(outputs).find(([, { inputs }]) => source in inputs);
  const [file, { imports }] = chunk ?? Object.entries(outputs).find(([, { entryPoint }]) => entryPoint === source);
  const paths = imports
    .filter(({ kind }) => kind === "import-statement")
    .map(({ path, external }) => (external ? posix.join("dist", path) : path));
  return { file, imports: [...new Set(paths)].sort() };
}

/** Returns the contents of all files of static/dist/ by their names. */
async function made() {
  const files = new Map();
  const manifest = {};
  async function add(sources, building) {
    const { metafile, outputFiles, warnings } = await building;
    if (warnings.length) throw new Error("Warnings count as errors.");
    for (const source of sources) manifest[source] = described(source, metafile.outputs);
    for (const { path, contents } of outputFiles) {
      const { entryPoint } = metafile.outputs[posix.relative(STATIC, path)];
      // A page whose chunk is loaded by itself needs no file that imports the chunk.
      if (!sources.includes(entryPoint) || manifest[entryPoint].file === posix.relative(STATIC, path))
        files.set(basename(path), Buffer.from(contents));
    }
  }
  // Where esbuild minifies, it ignores unused imports of what is not there. Browsers refuse them, with DEBUG.
  await build({ ...OPTIONS, entryPoints: MODULES, format: "esm", splitting: true, minify: false });
  for (const source of MODULES) await add([source], buildModule(source));
  await add(SCRIPTS, buildOthers(SCRIPTS, { format: "iife" }));
  await add(STYLES, buildOthers(STYLES));
  return files.set("manifest.json", Buffer.from(`${JSON.stringify(manifest, null, 1)}\n`));
}

async function isFresh(files) {
  const there = existsSync(DIST) ? await readdir(DIST) : [];
  const same = there.map(async (name) => files.get(name)?.equals(await readFile(join(DIST, name))));
  return there.length === files.size && (await Promise.all(same)).every(Boolean);
}

async function write(files) {
  await rm(DIST, { recursive: true, force: true });
  await mkdir(DIST);
  for (const [name, contents] of files) await writeFile(join(DIST, name), contents);
}

try {
  const files = await made();
  if (!process.argv.includes("--check")) await write(files);
  else if (!(await isFresh(files))) throw new Error("static/dist is out of date: run `make assets`.");
} catch ({ errors, message }) {
  if (!errors) console.error(message); // esbuild has reported its own
  process.exitCode = 1;
}
