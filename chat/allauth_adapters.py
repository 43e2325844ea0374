"""Where allauth asks Parley: how signing in ends, and how second factors are stored and named."""

from __future__ import annotations

from allauth.account.adapter import DefaultAccountAdapter
from allauth.mfa.adapter import DefaultMFAAdapter


class AccountAdapter(DefaultAccountAdapter):
    """Signing in."""


class MFAAdapter(DefaultMFAAdapter):
    """Second factors."""
