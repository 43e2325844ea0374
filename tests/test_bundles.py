"""Modules in one file: the same as they are one by one."""

from __future__ import annotations

import pytest

from chat.assets.bundles import CannotBundleError, bundle, folder_of

FILES = {
    "page.js": 'import Lib from "../vendor/lib.js";\nimport { one as first,\n  two } from "./a.js";\nimport "./b.js";\n'
    'const late = () => import("./late.js");\n',
    "a.js": 'import * as b from "./b.js";\nexport const one = b.zero() + 1;\nexport async function two() {}\n',
    "b.js": "export function zero() {\n  return 0;\n}\nexport class Thing {}\n",
    "late.js": 'import { one } from "./a.js";\n',
}


def test_modules_run_in_the_order_of_their_imports() -> None:
    """What is imported is there before who imports it, under the name that it has there; each runs once."""
    made = bundle("page.js", FILES)["page.js"]
    places = [made.index(f'$modules["{name}"] = ') for name in ("b.js", "a.js", "page.js")]
    assert places == sorted(places)
    assert made.count("function zero") == 1
    for line in (
        'import * as $vendor0 from "../vendor/lib.js";',
        'const b = $modules["b.js"];',
        'two } = $modules["a.js"];',
        "const Lib = $vendor0.default;",
        "return { zero, Thing };",
        'import("./late.js")',
    ):
        assert line in made
    assert "one: first" in made


def test_what_comes_later_gets_the_same_modules() -> None:
    made = bundle("page.js", FILES)
    assert made["a.js"] == 'import { $modules } from "./page.js";\nexport const { one, two } = $modules["a.js"];\n'
    assert made["late.js"] == FILES["late.js"]
    assert folder_of("js/page.js") == "js-page"


@pytest.mark.parametrize(
    "text",
    [
        'import "./page.js";\n',
        "export let count = 0;\n",
        "export default 1;\n",
        "const a = 1;\nexport { a };\n",
        'export * from "./b.js";\n',
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
        bundle("page.js", {**FILES, "b.js": text})
