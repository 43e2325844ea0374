"""Forms for sign-in, accounts and passwords."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth.forms import AuthenticationForm, PasswordChangeForm, SetPasswordForm
from django.core.exceptions import NON_FIELD_ERRORS
from django.utils.translation import gettext_lazy as _

from chat.limits.rates import RateLimited
from chat.models import User
from chat.services.people import accounts, login_throttle
from chat.services.people.security_log import Kind, record

WRONG_PASSWORD = _("Wrong password.")
# Describes the password validators of the settings.
PASSWORD_HELP = _("At least 8 characters. Avoid common passwords and your own name.")


class SignInForm(AuthenticationForm):
    """The form for user name and password. After many wrong passwords, attempts are throttled."""

    error_messages = {  # noqa: RUF012  # as in Django
        **AuthenticationForm.error_messages,
        "invalid_login": _("Wrong user name or password."),
    }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["username"].label = _("User name")
        for field in self.fields.values():
            field.widget.attrs["class"] = "input"
        if self.request is not None and self.request.GET.get("signed_out"):
            self.fields["username"].widget.attrs["aria-describedby"] = "signed-out"
        if self.is_bound and self.data.get("username"):
            self.fields["username"].widget.attrs.pop("autofocus", None)
            self.fields["password"].widget.attrs["autofocus"] = True

    def full_clean(self) -> None:
        """Describe the focused field by the reason why the form was refused.

        Screen readers do not announce alerts that are on the page when it loads.
        """
        super().full_clean()
        if self.has_error(NON_FIELD_ERRORS):
            self.fields["password"].widget.attrs["aria-describedby"] = "sign-in-problem"
        if self.has_error(NON_FIELD_ERRORS, "invalid_login"):
            self.fields["password"].widget.attrs["aria-invalid"] = "true"

    def clean(self) -> dict[str, Any]:
        if self.request is None:
            raise TypeError("a sign-in form needs its request")
        username = self.cleaned_data.get("username", "")
        try:
            login_throttle.begin(username=username, request=self.request)
        except RateLimited as refused:
            raise forms.ValidationError(refused.message, code=refused.code) from refused
        cleaned = super().clean()
        login_throttle.password_was_right(username=username, request=self.request)
        return cleaned


class JoinForm(forms.Form):
    """The form for the account of an invited user. It shows all problems together, each at its field."""

    display_name = forms.CharField(
        label=_("Your name"), max_length=80, widget=forms.TextInput({"class": "input", "autocomplete": "name"})
    )
    username = forms.CharField(
        label=_("User name"),
        max_length=150,
        help_text=_("You sign in with it."),
        widget=forms.TextInput({"class": "input", "autocomplete": "username", "autocapitalize": "none"}),
    )
    password = forms.CharField(
        label=_("Password"),
        strip=False,
        max_length=4096,
        help_text=PASSWORD_HELP,
        widget=forms.PasswordInput({"class": "input", "autocomplete": "new-password"}),
    )

    def full_clean(self) -> None:
        """Let the first refused field have the focus, because its description is its problem."""
        super().full_clean()
        for name in self.fields:
            if self.has_error(name):
                self.fields[name].widget.attrs["autofocus"] = True
                break

    def clean(self) -> dict[str, Any]:
        values = {name: self.cleaned_data.get(name, "") for name in self.fields}
        for name, errors in accounts.problems_of_account(**values).items():
            if name in self.cleaned_data:  # Django has already reported the other fields
                self.add_error(name, errors)
        return self.cleaned_data


class NewPasswordForm(SetPasswordForm):  # type: ignore[type-arg]  # only its stub takes arguments
    """The form for the first password of a user who signed in by a link."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            field.widget.attrs["class"] = "input"
            field.widget.attrs.pop("autofocus", None)
        self.fields["new_password1"].help_text = PASSWORD_HELP
        self.fields["new_password2"].label = _("Repeat the new password")
        self.fields["new_password2"].help_text = ""


class PasswordForm(NewPasswordForm, PasswordChangeForm):
    """The form for a new password, which also requires the current one."""

    error_messages = {  # noqa: RUF012  # as in Django
        **PasswordChangeForm.error_messages,
        "password_incorrect": WRONG_PASSWORD,
    }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["old_password"].label = _("Current password")

    def clean_old_password(self) -> str:
        _begin_confirmation(self.user)
        try:
            known: str = super().clean_old_password()
        except forms.ValidationError:
            record(Kind.SIGN_IN_FAILED, actor=None, person=self.user, method="password", step="password change")
            raise
        login_throttle.reset_confirmation(user=self.user)
        return known


class ConfirmForm(forms.Form):
    """The form in which the signed-in user enters their password again, to confirm their identity."""

    password = forms.CharField(
        label=_("Password"),
        strip=False,
        max_length=4096,
        widget=forms.PasswordInput({"class": "input", "autocomplete": "current-password", "autofocus": True}),
    )

    def __init__(self, user: User, data: Any = None) -> None:
        super().__init__(data)
        self.user = user

    def clean_password(self) -> str:
        password: str = self.cleaned_data["password"]
        _begin_confirmation(self.user)
        if not self.user.check_password(password):
            record(Kind.SIGN_IN_FAILED, actor=None, person=self.user, method="password", step="confirmation")
            raise forms.ValidationError(WRONG_PASSWORD, code="wrong")
        login_throttle.reset_confirmation(user=self.user)
        return password


def _begin_confirmation(user: User) -> None:
    try:
        login_throttle.begin_confirmation(user=user)
    except RateLimited as refused:
        raise forms.ValidationError(refused.message, code=refused.code) from refused


def password_form(user: User, data: Any = None) -> NewPasswordForm:
    """Return the form with which a user changes their password, or sets the first one."""
    return PasswordForm(user, data) if user.has_usable_password() else NewPasswordForm(user, data)
