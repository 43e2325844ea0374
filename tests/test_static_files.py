"""Static files as a server delivers them: kept for ever, compressed, complete."""

from __future__ import annotations

import gzip
import os
import posixpath
import re
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import brotli  # type: ignore[import-untyped]  # it ships no types
import pytest
from django.conf import settings as configured
from django.contrib.staticfiles import finders
from django.http import FileResponse
from django.template import Context, Template
from django.templatetags.static import static
from django.test import Client, RequestFactory, override_settings
from django.urls import reverse
from pytest_django.fixtures import Settings

from chat.assets import minifier, static_files, styles
from chat.assets.bundles import folder_of
from chat.assets.minifier import minified
from chat.assets.scripts import modules_of
from chat.assets.static_files import Delivery, Storage
from chat.overrides import whole_files

GOING = "v-00000000000000ff"
SOURCE = Path(configured.BASE_DIR) / "static"


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the prepared version, to be copied: compressing takes seconds."""
    folder = tmp_path_factory.mktemp("static")
    with override_settings(PREPARED_STATIC=folder):
        static_files.prepare()
    Storage.version = ""
    return folder


@pytest.fixture
def prepared(settings: Settings, tmp_path: Path, made: Path) -> Iterator[Path]:
    """The folder of the prepared version, served from now on."""
    shutil.copytree(made, tmp_path, copy_function=os.link, dirs_exist_ok=True)
    settings.PREPARED_STATIC = tmp_path
    static_files.prepare()
    yield tmp_path / Storage.version
    Storage.version = ""


def test_files_are_compressed_and_kept_for_ever(prepared: Path) -> None:
    delivery = Delivery(lambda request: None)
    static_files.prepare()
    for encoding, module in (("gzip", gzip), ("br", brotli)):
        response = delivery(RequestFactory().get(static("js/pages/session.js"), HTTP_ACCEPT_ENCODING=encoding))
        assert "immutable" in response["Cache-Control"]
        assert (response["Content-Encoding"], response["X-Content-Type-Options"]) == (encoding, "nosniff")
        assert module.decompress(response.content) == (prepared / "js/pages/session.js").read_bytes()


def test_all_that_modules_import_is_where_they_look_for_it(prepared: Path) -> None:
    """What is fetched ahead is what the modules import, by the same address: nothing comes twice."""
    for script in ("js/pages/session.js", "js/pages/home.js", "js/pages/settings.js"):
        for module in (script, *modules_of(script)):
            text = (prepared / module).read_text()
            for path in re.findall(r'(?:from ?|import ?|import\()"(\.[^"]+)"', text):
                assert (prepared / posixpath.normpath(f"{posixpath.dirname(module)}/{path}")).is_file(), (module, path)
            assert static(module).startswith(f"/static/{Storage.version}/js/") or "/vendor/" in static(module)


def test_each_page_gets_its_modules_in_one_file(prepared: Path) -> None:
    """What comes later has the same modules, not others of the same name."""
    for script in static_files.SCRIPTS:
        name = static_files.bundled(f"js/{script}")
        page = Template("{% load parley %}{% script name %}").render(Context({"name": f"js/{script}"}))
        assert re.findall('<script type="module" src="([^"]*)"', page) == [static(name)]
        assert all("/vendor/" in address for address in re.findall('preload" href="([^"]*)"', page))
        for module in modules_of(f"js/{script}"):
            if module.startswith("js/"):
                assert "$modules" in (prepared / folder_of(script) / module.removeprefix("js/")).read_text()


def test_only_comments_and_white_space_are_left_out_of_styles(prepared: Path) -> None:
    for path in SOURCE.glob("css/*.css"):
        text, made = path.read_text(), (prepared / path.relative_to(SOURCE)).read_text()
        # Comments that share a line with code stay.
        code = re.sub(r"(?ms)^[ \t]*/\*.*?\*/[ \t]*\n", "", text)
        assert re.sub(r"\s+", "", made) == re.sub(r"\s+", "", code), path


needs_the_minifier = pytest.mark.skipif(not minifier.installed_version(), reason="there is no package of it for Macs")
NESTED = """
/** Names. */
export const nested = (name, more) => {
  const spaced = `${name}  ${more ? ` and  ${more}` : ""} `;
  return spaced;
};
"""


@needs_the_minifier
def test_minified_scripts_keep_what_is_in_their_texts() -> None:
    """White space counts in template literals, and others import a module by the names that it exports."""
    (made,) = minified({"a.js": NESTED}).values()
    assert len(made) < 0.6 * len(NESTED)
    assert "` and  ${" in made
    assert "}  ${" in made
    assert re.search(r"export const nested\b", made)


@needs_the_minifier
def test_pages_get_minified_scripts(prepared: Path) -> None:
    for path in [*prepared.glob("js/pages/*.js"), *prepared.glob("js-*/pages/*.js")]:
        assert "\n  " not in path.read_text(), path


@needs_the_minifier
def test_scripts_stay_as_they_are_where_they_cannot_be_minified(caplog: pytest.LogCaptureFixture) -> None:
    """A page works with either; only its size differs."""
    broken = {"a.js": "const = ;"}
    assert minified(broken) == broken
    assert "without being minified" in caplog.text


def test_scripts_stay_as_they_are_without_a_minifier(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no package of it for Macs."""
    monkeypatch.setattr(minifier, "installed_version", lambda: "")
    assert minified({"a.js": NESTED}) == {"a.js": NESTED}


def test_pages_load_all_their_styles_in_one_file(prepared: Path) -> None:
    """What opens at a button has another file, and pages of their own add their sheet."""
    page = Template("{% load parley %}{% stylesheets %}{% stylesheets names %}|{% late_stylesheets %}").render(
        Context({"names": [*styles.STYLES, "css/home.css"]})
    )
    at_once, late = (re.findall(f'href="/static/{Storage.version}/([^"]*)"', part) for part in page.split("|"))
    assert (at_once, late) == ([styles.ALL, "css/home.css"], [styles.ALL_LATE])
    for name, sheets in ((styles.ALL, [*styles.EVERYWHERE, *styles.STYLES]), (styles.ALL_LATE, styles.LATE)):
        assert (prepared / name).read_text() == "".join((prepared / sheet).read_text() for sheet in sheets)


def test_nothing_is_made_again_when_nothing_has_changed(prepared: Path) -> None:
    before = (prepared / "js/pages/session.js").stat().st_mtime_ns
    static_files.prepare()
    assert (prepared / "js/pages/session.js").stat().st_mtime_ns == before


def test_pages_from_before_an_update_still_find_their_files(prepared: Path) -> None:
    """Three versions are kept, and nothing else that is lying about is touched."""
    for number in range(5):
        (prepared.parent / f"v-{number:016x}").mkdir()
    (prepared.parent / "other").mkdir()
    static_files.prepare()
    left = {folder.name for folder in prepared.parent.iterdir()}
    assert (len(left), {"other", prepared.name} <= left) == (4, True)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # whitenoise does not end its listing
def test_what_others_are_at_work_on_holds_nobody_up(prepared: Path) -> None:
    """Of processes that start together one makes a version, or takes an old one away, while another looks."""
    half, going = prepared.parent / ".making-half", prepared.parent / GOING
    for folder in (half, going):
        folder.mkdir()
        (folder / "a.js").write_text("a")
    (going / "gone.js").symlink_to("nowhere")  # listed, and not there when it is looked at
    delivery = Delivery(lambda request: None)
    static_files.prepare()
    assert delivery(RequestFactory().get(f"/static/{GOING}/a.js")) is None
    assert not any(".making" in url for url in delivery.files)
    assert f"/static/{prepared.name}/js/pages/session.js" in delivery.files
    assert half.is_dir()


def test_a_version_that_another_process_made_since_is_served(prepared: Path) -> None:
    """While processes are replaced one by one: its pages may ask any of them for what belongs to them."""
    delivery = Delivery(lambda request: None)
    static_files.prepare()
    later = prepared.parent / "v-00000000000000aa"
    (later / "js").mkdir(parents=True)
    (later / "js/a.js").write_text("a")
    response = delivery(RequestFactory().get(f"/static/{later.name}/js/a.js"))
    assert (response.content, "immutable" in response["Cache-Control"]) == (b"a", True)
    for address in ("/static/v-00000000000000bb/js/a.js", f"/static/{later.name}/../../secret_key"):
        assert delivery(RequestFactory().get(address)) is None


def test_what_was_left_half_made_goes(prepared: Path) -> None:
    left = prepared.parent / ".making-left"
    left.mkdir()
    os.utime(left, (0, 0))
    static_files.prepare()
    assert not left.exists()


def test_a_version_that_was_taken_away_is_not_found(prepared: Path) -> None:
    """By a process of a later version, while this one still runs."""
    delivery = Delivery(lambda request: None)
    static_files.prepare()
    shutil.rmtree(prepared)
    assert delivery(RequestFactory().get(static("js/pages/session.js"))).status_code == 404


def test_address_changes_with_any_content(prepared: Path, settings: Settings, tmp_path: Path) -> None:
    more = tmp_path / "more"
    more.mkdir()
    (more / "new.css").write_text("a {}")
    settings.STATICFILES_DIRS = [SOURCE, more]
    finders.get_finder.cache_clear()  # type: ignore[attr-defined]  # the stub does not know of the cache
    static_files.prepare()
    finders.get_finder.cache_clear()  # type: ignore[attr-defined]  # likewise
    assert Storage.version != prepared.name


@pytest.mark.django_db
def test_pages_are_compressed(client: Client) -> None:
    response = client.get(reverse("sign-in"), HTTP_ACCEPT_ENCODING="gzip")
    assert response["Content-Encoding"] == "gzip"
    assert b"<title>" in gzip.decompress(response.content)


@pytest.mark.django_db  # closing a response looks after the connections
def test_file_can_be_served_by_whitenoise_alone(prepared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SEND_WHOLE_FILES off: the same bytes, in WhiteNoise's own response."""
    monkeypatch.setattr(whole_files, "SEND_WHOLE_FILES", False)
    delivery = Delivery(lambda request: None)
    static_files.prepare()
    response = delivery(RequestFactory().get(static("js/pages/session.js")))
    assert isinstance(response, FileResponse)
    with closing(response):
        assert response.getvalue() == (prepared / "js/pages/session.js").read_bytes()
