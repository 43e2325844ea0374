"""Web Push messages: their encryption and their signature (UI-22)."""

from __future__ import annotations

import os
from contextlib import nullcontext

import pytest
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric import ec
from pytest_django.fixtures import Settings

from chat.security import web_push
from chat.security.web_push import CURVE_ORDER, PushTarget, encrypt, request_to
from tests.support.push_service import CURVE, Browser, Taken, decoded, encoded

# The example of RFC 8291, Appendix A.
PLAIN = b"When I grow up, I want to be a watermelon"
AUTH = "BTBZMqHH6r4Tts7J_aSIgg"
RECEIVER = "q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94"
SENDER = "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"
SALT = "DGv6ra1nlYgDCS1FRnbzlw"
BODY = (
    "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_"
    "yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
)


def private_key(text: str) -> ec.EllipticCurvePrivateKey:
    return ec.derive_private_key(int.from_bytes(decoded(text)), CURVE)


def test_encryption_is_that_of_the_standard(monkeypatch: pytest.MonkeyPatch) -> None:
    """UI-22: the encryption gives the bytes of the standard's own example."""
    monkeypatch.setattr(os, "urandom", lambda count: decoded(SALT)[:count])
    browser = Browser("a", private_key(RECEIVER), decoded(AUTH))
    assert encoded(encrypt(PLAIN, browser.target, private_key(SENDER))) == BODY
    assert browser.decrypt(decoded(BODY)) == PLAIN


def test_message_is_readable_by_its_browser_alone(settings: Settings) -> None:
    """UI-22: each message is encrypted with new keys, and has its lifetime and its urgency."""
    settings.VAPID_SUBJECT = "mailto:ops@example.org"
    browser = Browser("a")
    one, two = (request_to(browser.target, PLAIN, seconds=60, urgency="high", topic="s_1") for _ in range(2))
    assert one.body != two.body
    assert (browser.decrypt(one.body), browser.decrypt(two.body)) == (PLAIN, PLAIN)
    with pytest.raises(InvalidTag):
        Browser("b").decrypt(one.body)
    assert (one.headers["TTL"], one.headers["Urgency"], len(one.headers["Topic"])) == ("60", "high", 32)
    assert Taken("a", one.headers, one.body).claims()["sub"] == "mailto:ops@example.org"


def test_large_payloads_are_not_sent() -> None:
    """UI-22: payloads that push services would refuse are not sent."""
    with pytest.raises(ValueError, match="too many"):
        request_to(Browser("a").target, b"x" * 3001, seconds=60, urgency="high", topic="s_1")


@pytest.mark.parametrize(
    ("p256dh", "auth"),
    [
        ("", AUTH),
        (encoded(b"\x04" + b"1" * 64), AUTH),  # not on the curve
        (encoded(b"\x02" * 33), AUTH),
        ("%%%", AUTH),
        (None, ""),
        (None, encoded(b"short")),
    ],
)
def test_keys_that_are_none_are_found(p256dh: str | None, auth: str) -> None:
    """UI-22: invalid keys are found before anything is stored."""
    target = PushTarget("https://push.example.org/a", Browser("a").target.p256dh if p256dh is None else p256dh, auth)
    with pytest.raises(ValueError):
        web_push.check_target(target)


@pytest.mark.parametrize("key", ["", "abc", encoded(b"\xff" * 32), encoded(b"\0" * 32), "ä" * 43])
def test_private_keys_that_are_none_are_found(key: str) -> None:
    """UI-22: invalid private keys are found at the start."""
    with pytest.raises(ValueError):
        web_push.check_private_key(key)


@pytest.mark.parametrize(("number", "is_key"), [(1, True), (CURVE_ORDER - 1, True), (CURVE_ORDER, False)])
def test_private_keys_are_those_of_the_library(number: int, is_key: bool) -> None:
    """The check of a private key's range, which needs no library, agrees with the library."""
    key = encoded(number.to_bytes(32))
    for check in (web_push.check_private_key, lambda _key: ec.derive_private_key(number, ec.SECP256R1())):
        with nullcontext() if is_key else pytest.raises(ValueError):
            check(key)
