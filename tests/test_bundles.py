"""Modules in one file: the same as they are one by one."""

from __future__ import annotations

import pytest

from chat.assets.bundles import CannotBundleError, bundle, folder_of

FILES = {
    "pages/page.js": 'import Lib from "../../vendor/lib.js";\nimport { one as first,\n  two } from "../ui/a.js";\n'
    'import "./b.js";\nconst late = () => import("./late.js");\n',
    "ui/a.js": 'import * as b from "../pages/b.js";\nconst later = () => import("./c.js");\n'
    "export const one = b.zero() + 1;\nexport async function two() {}\n",
    "pages/b.js": "export function zero() {\n  return 0;\n}\nexport class Thing {}\n",
    "pages/late.js": 'import { one } from "../ui/a.js";\n',
}


def test_modules_run_in_the_order_of_their_imports() -> None:
    """What is imported is there before who imports it, under the name that it has there; each runs once."""
    made = bundle("pages/page.js", FILES)["pages/page.js"]
    places = [made.index(f'$modules["{name}"] = ') for name in ("pages/b.js", "ui/a.js", "pages/page.js")]
    assert places == sorted(places)
    assert made.count("function zero") == 1
    for line in (
        'import * as $vendor0 from "../../vendor/lib.js";',
        'const b = $modules["pages/b.js"];',
        'two } = $modules["ui/a.js"];',
        "const Lib = $vendor0.default;",
        "return { zero, Thing };",
        'import("./late.js")',
        'import("../ui/c.js")',
    ):
        assert line in made
    assert "one: first" in made


def test_what_comes_later_gets_the_same_modules() -> None:
    made = bundle("pages/page.js", FILES)
    passed_on = 'export const { one, two } = $modules["ui/a.js"];\n'
    assert made["ui/a.js"] == f'import {{ $modules }} from "../pages/page.js";\n{passed_on}'
    assert made["pages/b.js"].startswith('import { $modules } from "./page.js";\n')
    assert made["pages/late.js"] == FILES["pages/late.js"]
    assert folder_of("js/pages/page.js") == "js-page"


@pytest.mark.parametrize(
    "text",
    [
        'import "./page.js";\n',
        "export let count = 0;\n",
        "export default 1;\n",
        "const a = 1;\nexport { a };\n",
        'export * from "../ui/a.js";\n',
        "console.log(import.meta.url);\n",
        'import "./gone.js";\n',
        'import { three } from "./late.js";\n',
        "export const one = 1, two = 2;\n",
        'const words = await import("./late.js");\n',
        "for await (const one of many) console.log(one);\n",
    ],
)
def test_what_is_not_known_is_not_guessed_at(text: str) -> None:
    with pytest.raises(CannotBundleError):
        bundle("pages/page.js", {**FILES, "pages/b.js": text})
