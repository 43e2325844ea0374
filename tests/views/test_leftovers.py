"""The page's scripts, styles and texts: nothing is unused, and nothing that is used is missing."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from django.conf import settings

from tests.support.agreement import agree

BASE = Path(settings.BASE_DIR)
# The script checks what the page shows of a stream, and uses the page's names.
HOSTILE = (BASE / "tests/browser/hostile.js").read_text()
SCRIPTS = {f"{path.parent.name}/{path.name}": path.read_text() for path in (BASE / "static/js").glob("*/*.js")}
# Texts that scripts look up by the name of the connection's state.
BY_STATE = {"connected", "connecting", "offline", "reconnecting"}
# Classes that are composed of variables: avatar and terminal colors, kinds of alerts.
PUT_TOGETHER = re.compile(r"(c|fg|bg)\d+|alert-[a-z]+")


@cache
def everything_but_styles() -> str:
    python = [*(BASE / "chat").rglob("*.py"), *(BASE / "agents").rglob("*.py")]
    files = [*python, *(BASE / "templates").rglob("*.html")]
    return "\n".join([*(path.read_text() for path in files), *SCRIPTS.values()])


def test_every_word_is_said_and_every_word_said_is_there() -> None:
    """UI-13: words.html has exactly the texts that scripts use."""
    listed = re.findall(r'data-([\w-]+)="', (BASE / "templates/chat/words.html").read_text())
    names = {re.sub(r"-(\w)", lambda letter: letter[1].upper(), name) for name in listed}
    said = set(re.findall(r"\bwords\.([a-z]\w*)(?!\.(?:js|html))\b", re.sub(r"//.*", "", "\n".join(SCRIPTS.values()))))
    agree(
        names,
        (said - {"js", "html"}) | (names & BY_STATE),
        missing="templates/chat/words.html lacks words.{}: in HTML its name has hyphens, data-two-words for twoWords.",
        extra="Remove the text of words.{} from templates/chat/words.html: no script uses it.",
    )


def test_every_styled_class_occurs() -> None:
    styles = "\n".join(path.read_text() for path in (BASE / "static/css").glob("*.css"))
    plain = re.sub(r'/\*.*?\*/|"[^"]*"|url\([^)]*\)', "", styles, flags=re.DOTALL)
    classes = {name for name in re.findall(r"\.(-?[A-Za-z_][\w-]*)", plain) if not PUT_TOGETHER.fullmatch(name)}
    # Pygments uses the classes of highlight.css.
    own = classes - set(re.findall(r"\.(\w+)", (BASE / "static/css/highlight.css").read_text()))
    assert sorted(own - set(re.findall(r"[\w-]+", everything_but_styles()))) == []


def test_every_icon_of_the_sprite_is_shown() -> None:
    symbols = re.findall(r'<symbol id="([^"]+)"', (BASE / "static/icons.svg").read_text())
    source = everything_but_styles()
    assert [name for name in symbols if not re.search(rf"""["'`]{name}["'`]""", source)] == []


def test_every_exported_name_is_imported_somewhere() -> None:
    unused = []
    for module, text in SCRIPTS.items():
        others = "\n".join(other for name, other in SCRIPTS.items() if name != module and Path(module).name in other)
        others += HOSTILE
        exported = re.findall(r"^export (?:async )?(?:function|class|const) (\w+)", text, re.MULTILINE)
        # `connectAll` calls `connect` of any module.
        used = [name for name in exported if name == "connect" or re.search(rf"\b{name}\b", others)]
        unused += [f"{module}: {name}" for name in exported if name not in used]
    assert unused == []


def test_what_may_fail_has_one_way_to_fail() -> None:
    """Storage throws in private windows and requests can fail: only the modules that handle this use them."""
    asks = {name for name, text in SCRIPTS.items() if re.search(r"(?<![.\w])fetch\(", text)}
    keeps = {name for name, text in SCRIPTS.items() if re.search(r"(local|session)Storage\.", text)}
    unhandled = r"(?<!lazyImport\(\(\) => )(?<!lazyImportWithTyped\(\(\) => )import\("
    bare = {name for name, text in SCRIPTS.items() if re.search(unhandled, text)}
    assert (asks, keeps, bare) == (
        {"net/http.js", "pages/service_worker.js"},  # a worker has no page, from which net/http.js takes the token
        {"pages/theme.js"},
        # a renewal in the background, which the next page repeats if it fails, and notifications of a page that no one
        # looks at, which loads their module early
        {"ui/push.js", "ui/notify.js"},
    )
