"""The forms that people fill in outside of a session."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.password_validation import password_validators_help_text_html
from django.utils.functional import lazystr
from django.utils.translation import gettext_lazy as _


class SignInForm(AuthenticationForm):
    """Name and password."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            field.widget.attrs["class"] = "input"


class JoinForm(forms.Form):
    """An account for somebody who was invited. Whether name and password will do is decided by the service."""

    display_name = forms.CharField(
        label=_("Your name"), max_length=80, widget=forms.TextInput({"class": "input", "autocomplete": "name"})
    )
    username = forms.CharField(
        label=_("User name"),
        max_length=150,
        help_text=_("What you sign in with."),
        widget=forms.TextInput({"class": "input", "autocomplete": "username", "autocapitalize": "none"}),
    )
    password = forms.CharField(
        label=_("Password"),
        strip=False,
        max_length=4096,
        help_text=lazystr(password_validators_help_text_html()),
        widget=forms.PasswordInput({"class": "input", "autocomplete": "new-password"}),
    )
