"""Second factors for tests: an authenticator app, and a passkey with real cryptography."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal import auth as totp
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from fido2.cose import ES256
from fido2.utils import websafe_decode, websafe_encode
from fido2.webauthn import (
    AttestationObject,
    AttestedCredentialData,
    AuthenticatorData,
    CollectedClientData,
)

from chat.models import User
from chat.security.encryption import encrypt
from chat.services.people import second_factor

HOST = "localhost"
ORIGIN = f"http://{HOST}"
PRESENT_AND_VERIFIED = AuthenticatorData.FLAG.UP | AuthenticatorData.FLAG.UV


def code_of(secret: str, *, step: int = 0) -> str:
    """Return the code that an app shows now, or in `step` half minutes."""
    counters = list(totp.yield_hotp_counters_from_time())
    return totp.format_hotp_value(totp.hotp_value(secret, counters[1] + step))


def give_app(user: User) -> str:
    """Set up an authenticator app for a user, and return its secret."""
    secret = totp.generate_totp_secret()
    Authenticator.objects.create(user=user, type="totp", data={"secret": encrypt(secret)})
    return secret


def give_codes(user: User) -> list[str]:
    """Create recovery codes for a user who has a second factor."""
    return second_factor.make_recovery_codes(user=user)


@dataclass
class SoftPasskey:
    """A passkey in memory that responds like the browser's WebAuthn API."""

    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    id: bytes = field(default_factory=lambda: secrets.token_bytes(16))
    user_handle: str = ""
    flags: AuthenticatorData.FLAG = PRESENT_AND_VERIFIED
    origin: str = ORIGIN

    def create(self, options: dict[str, Any]) -> str:
        """Return the response of `navigator.credentials.create` as JSON."""
        public = options["publicKey"]
        self.user_handle = public["user"]["id"]
        public_key = ES256.from_cryptography_key(self.key.public_key())  # type: ignore[no-untyped-call]  # fido2's
        data = AttestedCredentialData.create(b"\0" * 16, self.id, public_key)
        auth_data = self._auth_data(public["rp"]["id"], data)
        client = self._client(CollectedClientData.TYPE.CREATE, public["challenge"])
        attestation = AttestationObject.create("none", auth_data, {})
        response = {"clientDataJSON": websafe_encode(client), "attestationObject": websafe_encode(attestation)}
        return self._answer(response)

    def get(self, options: dict[str, Any]) -> str:
        """Return the response of `navigator.credentials.get` as JSON."""
        public = options["publicKey"]
        auth_data = self._auth_data(public["rpId"])
        client = self._client(CollectedClientData.TYPE.GET, public["challenge"])
        signature = self.key.sign(auth_data + client.hash, ec.ECDSA(SHA256()))
        response = {
            "clientDataJSON": websafe_encode(client),
            "authenticatorData": websafe_encode(auth_data),
            "signature": websafe_encode(signature),
            "userHandle": self.user_handle,
        }
        return self._answer(response)

    def _auth_data(self, host: str, credential: AttestedCredentialData | None = None) -> AuthenticatorData:
        digest = sha256(host.encode()).digest()
        flags = self.flags | (AuthenticatorData.FLAG.AT if credential else 0)
        made: AuthenticatorData = AuthenticatorData.create(digest, flags, 1, credential or b"")
        return made

    def _client(self, kind: CollectedClientData.TYPE, challenge: str) -> CollectedClientData:
        return CollectedClientData.create(type=kind, challenge=websafe_decode(challenge), origin=self.origin)

    def _answer(self, response: dict[str, str]) -> str:
        encoded = websafe_encode(self.id)
        return json.dumps(
            {"id": encoded, "rawId": encoded, "type": "public-key", "clientExtensionResults": {}, "response": response}
        )
