"""Preferences of users."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from PIL import Image
from pytest_django.fixtures import Settings

from chat.access import person_for
from chat.errors import ServiceError
from chat.models import User
from chat.services.people import preferences
from tests.support.files import often
from tests.support.testing_node import person

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _own_files(settings: Settings, tmp_path: Path) -> None:
    settings.MEDIA_ROOT = tmp_path


def drawn(kind: str, size: tuple[int, int] = (400, 200), exif: bytes = b"") -> SimpleUploadedFile:
    data = BytesIO()
    picture = Image.new("RGB", size, "red")
    picture.paste("blue", (0, 0, size[0] // 2, size[1]))
    picture.save(data, kind, **({"exif": exif} if exif else {}))
    return SimpleUploadedFile("me.png", data.getvalue())


def kept(user: User) -> Image.Image:
    user.refresh_from_db()
    return Image.open(user.picture.path)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "GIF"])
def test_picture_is_cut_to_its_middle_square(ana: User, kind: str) -> None:
    preferences.set_picture(user=ana, upload=drawn(kind))
    with kept(ana) as picture:
        left, right = picture.convert("RGB").getpixel((20, 128)), picture.convert("RGB").getpixel((236, 128))
        assert (picture.format, picture.size) == ("WEBP", (256, 256))
    assert isinstance(left, tuple)
    assert isinstance(right, tuple)
    assert (left[2] > 200, right[0] > 200) == (True, True)


def test_picture_keeps_nothing_of_its_file(ana: User) -> None:
    """A stored picture does not contain metadata, such as the place of the photograph."""
    exif = Image.Exif()
    exif[0x010E] = "at home"
    preferences.set_picture(user=ana, upload=drawn("JPEG", exif=exif.tobytes()))
    with kept(ana) as picture:
        assert not picture.getexif()


def test_new_picture_takes_the_old_ones_place(ana: User, tmp_path: Path) -> None:
    for kind in ("PNG", "JPEG"):
        preferences.set_picture(user=ana, upload=drawn(kind))
    assert len(list((tmp_path / "pictures").iterdir())) == 1
    preferences.remove_picture(user=ana)
    assert (list((tmp_path / "pictures").iterdir()), User.objects.get(pk=ana.pk).picture.name) == ([], "")


@pytest.mark.parametrize(
    "content", [b"", b"<svg xmlns='http://www.w3.org/2000/svg'/>", b"%PDF-1.7", b"\x89PNG\r\n\x1a\n" + b"\0" * 50]
)
def test_other_files_are_refused(ana: User, content: bytes) -> None:
    with pytest.raises(ServiceError, match="Unsupported picture"):
        preferences.set_picture(user=ana, upload=SimpleUploadedFile("me.png", content))
    assert not User.objects.get(pk=ana.pk).picture


def test_picture_that_would_keep_a_core_is_not_decoded(ana: User) -> None:
    with pytest.raises(ServiceError, match="too many pixels"):
        preferences.set_picture(user=ana, upload=SimpleUploadedFile("me.jpg", often(200)))


def test_picture_with_too_many_pixels_is_not_decoded(ana: User) -> None:
    """MSG-12: a picture with too many pixels is refused before decoding, because a file of some KB could fill the
    memory."""
    data = BytesIO()
    Image.new("1", (10_000, 6_000)).save(data, "PNG")
    with pytest.raises(ServiceError, match="too many pixels"):
        preferences.set_picture(user=ana, upload=SimpleUploadedFile("me.png", data.getvalue()))


def test_choices_are_kept(ana: User) -> None:
    """UI-13: the language, the theme and the keyboard preferences are stored."""
    values = {"theme": "dark", "language": "zh-hant", "clock": "12", "send_key": "ctrl_enter", "notify": "yes"}
    preferences.choose(user=ana, values=values)
    stored = User.objects.get(pk=ana.pk)
    assert {**values, "notify": True} == {name: getattr(stored, name) for name in values}


@pytest.mark.parametrize("values", [{"theme": "pink"}, {"language": "tlh"}, {"is_superuser": "1"}, {"notify": ""}])
def test_unknown_choices_are_refused(ana: User, values: dict[str, str]) -> None:
    with pytest.raises(ServiceError):
        preferences.choose(user=ana, values=values)


@pytest.mark.parametrize(("name", "shown"), [("  Ana   Kovač ", "Ana Kovač"), ("梅雪", "梅雪")])
def test_name_is_kept_tidy(ana: User, name: str, shown: str) -> None:
    """Display names are normalized (MSG-12)."""
    preferences.rename(user=ana, name=name)
    assert User.objects.get(pk=ana.pk).sender == shown


@pytest.mark.parametrize("name", ["", "   ", "x" * 81, "\u200b\u2800"])
def test_names_that_cannot_be_are_refused(ana: User, name: str) -> None:
    with pytest.raises(ServiceError, match="up to 80"):
        preferences.rename(user=ana, name=name)


def test_users_find_members_of_a_shared_workspace(ana: User, bo: User) -> None:
    stranger = person("Stranger")
    found = [person_for(ana, user.pk) for user in (ana, bo, stranger)]
    assert found == [ana, bo, None]
