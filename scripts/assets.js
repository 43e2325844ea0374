// Builds static/dist/: the scripts and style sheets that pages load, and a manifest of them for chat/assets/built.py.
// With --check, it writes nothing, and fails if static/dist/ is out of date.
import { build } from "esbuild";
import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { basename, extname, join, parse, posix } from "node:path";
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
// Not modules: they run before the page is shown, or in a frame without an origin, which cannot load modules.
const SCRIPTS = ["js/pages/theme.js", "js/pages/early.js", "js/pages/diagram_frame.js"];
const STYLES = [
  "css/all.css",
  "css/late.css",
  "css/print.css",
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
  // The first versions with light-dark(), which the styles need.
  target: ["chrome123", "firefox120", "safari17.5"],
  external: [join(STATIC, "vendor/*"), join(STATIC, "*.svg")],
  legalComments: "none",
  metafile: true,
  write: false,
  logLevel: "warning",
};

const nameOf = (source) => (source.startsWith("admin/") ? "admin-" : "") + parse(source).name;

/**
 * Lets each module that a page imports later also import the page itself. All modules that the page needs at first then
 * have the same importers, so esbuild puts them into one chunk, instead of one for each combination of importers.
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

/** Builds one page separately, because pages would share many small chunks. */
function buildModule(source) {
  return build({
    ...OPTIONS,
    entryPoints: [source],
    format: "esm",
    splitting: true,
    chunkNames: "[name]-[hash]",
    plugins: [afterPage(source)],
  });
}

/**
 * Returns the names of a page's files, by their names with hashes. No hashes are needed, because the name of the folder
 * in which a server delivers the files depends on their content. Stable names keep changes in the repository small.
 */
function namesOf(source, outputs) {
  const page = nameOf(source);
  const names = new Map();
  for (const [path, { entryPoint, inputs }] of Object.entries(outputs)) {
    const [first] = Object.keys(inputs).sort();
    if (source in inputs) names.set(basename(path), `${page}.js`);
    else if (!entryPoint) names.set(basename(path), `${page}-shared-${parse(first).name}.js`);
    else if (entryPoint !== source) names.set(basename(path), `${page}-${parse(entryPoint).name}.js`);
    // The remaining file only imports the page's chunk, so pages load the chunk instead.
  }
  return names;
}

/** Returns the page's files by name, and the vendored modules that it imports, which browsers should fetch early. */
async function moduleFiles(source) {
  const { metafile, outputFiles, warnings } = await buildModule(source);
  const names = namesOf(source, metafile.outputs);
  const own = Object.values(metafile.outputs).find(({ inputs }) => source in inputs);
  const vendored = own.imports.filter(({ external }) => external).map(({ path }) => posix.join("dist", path));
  const renamed = (text) =>
    [...names].reduce((now, [hashed, name]) => now.replaceAll(`./${hashed}`, `./${name}`), text);
  const files = outputFiles
    .filter(({ path }) => names.has(basename(path)))
    .map(({ path, text }) => [names.get(basename(path)), renamed(text)]);
  return { files, warnings, imports: [...new Set(vendored)].sort() };
}

/** Returns the built files of sources that import nothing. */
async function otherFiles(sources, options) {
  const entryPoints = sources.map((source) => ({ in: source, out: nameOf(source) }));
  const { outputFiles, warnings } = await build({ ...OPTIONS, ...options, entryPoints });
  return { files: outputFiles.map(({ path, text }) => [basename(path), text]), warnings, imports: [] };
}

/** Returns the contents of all files of static/dist/ by their names. */
async function buildAll() {
  const all = new Map();
  const manifest = {};
  async function add(sources, building) {
    const { files, warnings, imports } = await building;
    if (warnings.length) throw new Error("Warnings count as errors.");
    for (const source of sources) manifest[source] = { file: `dist/${nameOf(source)}${extname(source)}`, imports };
    for (const [name, text] of files) {
      if (all.has(name)) throw new Error(`Two files would be static/dist/${name}.`);
      all.set(name, text);
    }
  }
  // When it minifies, esbuild ignores unused imports of missing names. Browsers, which get the sources with DEBUG, do
  // not.
  await build({ ...OPTIONS, entryPoints: MODULES, format: "esm", splitting: true, minify: false });
  for (const source of MODULES) await add([source], moduleFiles(source));
  await add(SCRIPTS, otherFiles(SCRIPTS, { format: "iife" }));
  await add(STYLES, otherFiles(STYLES));
  return all.set("manifest.json", `${JSON.stringify(manifest, null, 1)}\n`);
}

async function isUpToDate(files) {
  const present = existsSync(DIST) ? await readdir(DIST) : [];
  const same = present.map(async (name) => files.get(name) === (await readFile(join(DIST, name), "utf8")));
  return present.length === files.size && (await Promise.all(same)).every(Boolean);
}

async function write(files) {
  await rm(DIST, { recursive: true, force: true });
  await mkdir(DIST);
  for (const [name, text] of files) await writeFile(join(DIST, name), text);
}

try {
  const files = await buildAll();
  if (!process.argv.includes("--check")) await write(files);
  else if (!(await isUpToDate(files))) throw new Error("static/dist is out of date: run `make assets`.");
} catch ({ errors, message }) {
  if (!errors) console.error(message); // esbuild has already reported its own errors
  process.exitCode = 1;
}
