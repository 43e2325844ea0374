"""Accounts: the first administrator, one-time links, and registration by invitation."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from chat.errors import Invalid, NotForGuests, ServiceError
from chat.models import Membership, Session, SessionRole, SignInLink, User, Workspace
from chat.services.people import accounts, sharing, workspaces
from chat.services.sessions import lifecycle

pytestmark = pytest.mark.django_db
PASSWORD = "correct horse battery"


@pytest.fixture
def administrator() -> User:
    return accounts.first_administrator()


@pytest.fixture
def session(administrator: User) -> Session:
    return lifecycle.create_session(owner=administrator)


@pytest.fixture
def invitation(session: Session, administrator: User) -> str:
    return sharing.invite(session=session, author=administrator, role=SessionRole.EDITOR)[1]


def register(token: str, **changes: str) -> tuple[User, Session]:
    given = {"username": "ana", "display_name": "Ana", "password": PASSWORD, **changes}
    user, joined = accounts.register(token=token, **given)
    assert isinstance(joined, Session)
    return user, joined


@pytest.mark.parametrize("name", ["ana", "аnа"], ids=["same", "lookalike"])
def test_name_that_is_taken_while_the_password_is_hashed_is_refused(
    invitation: str, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Hashing may wait. Of two requests with the same name, the second one gets a sentence and not an error."""
    set_password = User.set_password

    def set_slowly(user: User, password: str) -> None:
        User.objects.create(username=name)
        set_password(user, password)

    monkeypatch.setattr(User, "set_password", set_slowly)
    with pytest.raises(Invalid, match="is taken"):
        register(invitation)
    assert [*User.objects.order_by("pk").values_list("username", flat=True)] == ["admin", name]


def test_first_administrator_has_all_rights_and_no_usable_password(administrator: User) -> None:
    """The one who comes in by the printed link may do everything, and has no password to be guessed."""
    assert (administrator.username, administrator.sender) == ("admin", "Admin")
    assert administrator.is_superuser
    assert administrator.is_staff
    assert not administrator.has_usable_password()
    assert [m.role for m in administrator.memberships.all()] == [Membership.Role.OWNER]


def test_first_administrator_is_found_again(administrator: User) -> None:
    User.objects.create_superuser("zoe")

    assert accounts.first_administrator() == administrator
    assert User.objects.count() == 2
    assert Workspace.objects.count() == 1


def test_no_second_administrator_is_made_behind_peoples_backs() -> None:
    """A house with people but without an active administrator gives no one the keys by printing them."""
    User.objects.create_user("ana")
    User.objects.create_superuser("boss", is_active=False)

    with pytest.raises(ServiceError, match="createsuperuser") as refused:
        accounts.first_administrator()

    assert refused.value.code == "no_administrator"
    assert User.objects.count() == 2


def test_link_signs_in_once(administrator: User) -> None:
    token = accounts.sign_in_link(user=administrator)

    assert accounts.redeem(token) == administrator
    assert accounts.redeem(token) is None


@pytest.mark.django_db(transaction=True)
def test_link_opened_in_many_tabs_at_once_signs_in_one(administrator: User) -> None:
    token = accounts.sign_in_link(user=administrator)

    def redeem(_tab: int) -> User | None:
        try:
            return accounts.redeem(token)
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as tabs:
        assert sorted(user is not None for user in tabs.map(redeem, range(8))) == [False] * 7 + [True]


def test_link_is_stored_as_hash_only(administrator: User) -> None:
    """Who reads the database cannot sign in with what is there."""
    token = accounts.sign_in_link(user=administrator)
    link = SignInLink.objects.get()

    assert len(token) >= 43
    assert token not in str(vars(link))
    assert accounts.redeem(link.token_hash) is None


def test_new_link_replaces_the_earlier_ones_of_this_person_only(administrator: User) -> None:
    ana = User.objects.create_user("ana")
    first, anas = accounts.sign_in_link(user=administrator), accounts.sign_in_link(user=ana)

    second = accounts.sign_in_link(user=administrator)

    assert [accounts.redeem(token) for token in (first, second, anas)] == [None, administrator, ana]


def test_link_expires(administrator: User) -> None:
    token = accounts.sign_in_link(user=administrator)
    assert SignInLink.objects.get().expires_at > timezone.now()
    SignInLink.objects.update(expires_at=timezone.now() - timedelta(seconds=1))

    assert accounts.redeem(token) is None


def test_link_of_a_deactivated_user_does_not_sign_in(administrator: User) -> None:
    token = accounts.sign_in_link(user=administrator)
    User.objects.update(is_active=False)

    assert accounts.redeem(token) is None


@pytest.mark.parametrize("token", ["", "nonsense", "\0", "ключ", "x" * 10_000])
def test_unknown_link_does_not_sign_in(token: str) -> None:
    assert accounts.redeem(token) is None


def test_registration_lets_in_by_invitation(session: Session, invitation: str) -> None:
    ana, opened = register(invitation, username=" ana ", display_name=" \u202eAna\u200b ")

    assert (ana.username, ana.sender, ana.is_staff) == ("ana", "Ana", False)
    assert ana.check_password(PASSWORD)
    assert opened == session
    assert sharing.members(session)[1:] == [sharing.Member(ana, SessionRole.EDITOR, is_guest=True)]
    with pytest.raises(NotForGuests):
        workspaces.current_workspace(ana)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"username": "ADMIN"}, "ADMIN.*taken"),
        ({"username": "аdmіn"}, "taken"),
        ({"username": "pаul"}, "letters of a single alphabet"),
        ({"username": ""}, "cannot be blank"),
        ({"username": "a b\n"}, "valid username"),
        ({"username": "x" * 200}, "at most 150"),
        ({"display_name": "x" * 200}, "at most 80"),
        ({"password": "12345"}, "too short"),
        ({"password": "password"}, "too common"),
        ({"password": "anastasia", "username": "anastasia"}, "too similar"),
    ],
)
def test_registration_refuses_in_words(invitation: str, changes: dict[str, str], words: str) -> None:
    with pytest.raises(ServiceError, match=words) as refused:
        register(invitation, **changes)

    assert refused.value.code == "invalid"
    assert User.objects.count() == 1


def test_registration_needs_a_valid_invitation(invitation: str) -> None:
    """Nor does the answer to a stranger tell which names are taken."""
    for token in ("", "nonsense", invitation[:-1]):
        with pytest.raises(ServiceError) as refused:
            register(token, username="admin")
        assert refused.value.code == "no_such_invitation"
    assert User.objects.count() == 1


def test_current_workspace_is_the_oldest_and_made_only_once() -> None:
    ana = User.objects.create_user("ana")

    home = workspaces.current_workspace(ana)
    Membership.objects.create(user=ana, workspace=Workspace.objects.create(name="Later"))

    assert home.name == "Home"
    assert workspaces.current_workspace(ana) == home
    assert ana.memberships.count() == 2
