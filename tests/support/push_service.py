"""A push service on this machine, over HTTPS, and the browsers that subscribe to it and decrypt its messages."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import socket
import ssl
import struct
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Self

import jwt
from aiohttp import web
from aiohttp.abc import AbstractResolver, ResolveResult
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from cryptography.x509.oid import NameOID

from chat.models import LoginSession, PushSubscription, User
from chat.security.session_store import PUSH, SessionStore
from chat.security.web_push import PushTarget
from chat.services.people import push

HOST = "push.example.org"
CURVE = ec.SECP256R1()


def encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def point_of(key: ec.EllipticCurvePublicKey) -> bytes:
    return key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


class Browser:
    """A browser's side of a subscription. Only the browser can decrypt its messages (RFC 8291, RFC 8188)."""

    def __init__(self, path: str, private_key: ec.EllipticCurvePrivateKey | None = None, auth: bytes = b"") -> None:
        self.key = private_key or ec.generate_private_key(CURVE)
        self.auth = auth or os.urandom(16)
        self.path = path
        self.target = PushTarget(f"https://{HOST}/{path}", encoded(point_of(self.key.public_key())), encoded(self.auth))

    def decrypt(self, body: bytes) -> bytes:
        salt, (record_size, id_length) = body[:16], struct.unpack("!IB", body[16:21])
        sender, record = body[21 : 21 + id_length], body[21 + id_length :]
        assert len(record) <= record_size
        shared = self.key.exchange(ec.ECDH(), ec.EllipticCurvePublicKey.from_encoded_point(CURVE, sender))
        info = b"WebPush: info\0" + point_of(self.key.public_key()) + sender
        secret = HKDF(hashes.SHA256(), 32, self.auth, info).derive(shared)
        key = HKDF(hashes.SHA256(), 16, salt, b"Content-Encoding: aes128gcm\0").derive(secret)
        nonce = HKDF(hashes.SHA256(), 12, salt, b"Content-Encoding: nonce\0").derive(secret)
        text, delimiter, padding = AESGCM(key).decrypt(nonce, record, None).rpartition(b"\x02")
        assert (delimiter, padding.strip(b"\0")) == (b"\x02", b"")
        return text


@dataclass
class Taken:
    """A message that the service has accepted."""

    path: str
    headers: dict[str, str]
    body: bytes

    def claims(self) -> dict[str, Any]:
        """Return the claims that the sender has signed. Raise jwt.InvalidTokenError."""
        scheme, _, values = self.headers["Authorization"].partition(" ")
        assert scheme == "vapid"
        fields = dict(part.strip().split("=", 1) for part in values.split(","))
        key = ec.EllipticCurvePublicKey.from_encoded_point(CURVE, decoded(fields["k"]))
        claims: dict[str, Any] = jwt.decode(fields["t"], key, algorithms=["ES256"], audience=f"https://{HOST}")
        return claims

    def read_by(self, browser: Browser) -> dict[str, str]:
        values: dict[str, str] = json.loads(browser.decrypt(self.body))
        return values


class Resolver(AbstractResolver):
    """A resolver that resolves every host to one port of this machine."""

    def __init__(self, port: int) -> None:
        self._port = port

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        found = ResolveResult(hostname=host, host="127.0.0.1", port=self._port, family=socket.AF_INET, proto=0, flags=0)
        return [found]

    async def close(self) -> None:
        """Do nothing, because nothing is open."""


@dataclass
class PushService:
    """A push service that answers each path with its `answers` one after the other, and with 201 without one.

    `before_answer` is called with the path of each message.
    """

    taken: list[Taken] = field(default_factory=list)
    answers: dict[str, list[int]] = field(default_factory=dict)
    port: int = 0
    before_answer: Callable[[str], Awaitable[None]] | None = None
    _came: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def __aenter__(self) -> Self:
        application = web.Application()
        application.router.add_post("/{path}", self._take)
        self._runner = web.AppRunner(application)
        await self._runner.setup()
        with tempfile.TemporaryDirectory() as folder:
            self.context, self.trusted = certificates(Path(folder))
        site = web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=self.context)
        await site.start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._runner.cleanup()

    async def _take(self, request: web.Request) -> web.Response:
        path = request.match_info["path"]
        message = Taken(path, dict(request.headers), await request.read())
        async with self._came:
            self.taken.append(message)
            self._came.notify_all()
        if self.before_answer is not None:
            await self.before_answer(path)
        answers = self.answers.get(path) or [201]
        return web.Response(status=answers.pop(0) if len(answers) > 1 else answers[0])

    async def takes(self, count: int) -> list[Taken]:
        """Wait until at least `count` messages have arrived, and return all."""
        async with asyncio.timeout(20), self._came:
            await self._came.wait_for(lambda: len(self.taken) >= count)
        return self.taken


def certificates(folder: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Return the TLS context of a server with a self-signed certificate, and that of a client that accepts it."""
    key, name = ec.generate_private_key(CURVE), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, HOST)])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
    names = x509.SubjectAlternativeName([x509.DNSName(HOST), x509.IPAddress(ip_address("127.0.0.1"))])
    certificate = builder.add_extension(names, critical=False).sign(key, hashes.SHA256())
    (folder / "cert.pem").write_bytes(certificate.public_bytes(Encoding.PEM))
    (folder / "key.pem").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    return server, ssl.create_default_context(cafile=str(folder / "cert.pem"))


def subscribed(user: User, path: str, *, language: str = "") -> Browser:
    """Turn on a user's notifications in a signed-in browser, and return the browser."""
    browser = Browser(path)
    User.objects.filter(pk=user.pk).update(notify=True)
    made = push.register(user=user, target=browser.target, name="Chrome on Linux", language=language)
    login = SessionStore()
    login.update({"_auth_user_id": str(user.pk), PUSH: made.digest})
    login.save()
    return browser


def sign_out(user: User) -> None:
    """End all logins of a user, as if they had expired."""
    LoginSession.objects.filter(user=user).delete()


def browsers_of(user: User) -> list[str]:
    return [row.endpoint.rsplit("/", 1)[1] for row in PushSubscription.objects.filter(user=user)]
