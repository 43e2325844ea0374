"""Forms that refuse to overwrite a newer change unseen."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from django import forms
from django.db.models import Model
from django.utils.functional import cached_property
from django.utils.html import format_html
from django.utils.translation import gettext as _

if TYPE_CHECKING:
    Form = forms.ModelForm[Any]
else:
    Form = forms.ModelForm


class RevisedForm(Form):
    """A form with the revision that the user has changed. `templates/admin/change_form.html` renders its field."""

    # The name of a column that changes when a field of the form changes, and a hidden field for its value.
    revision_column = "revision"
    revision: forms.Field = forms.IntegerField(widget=forms.HiddenInput, required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.pk:
            self.initial["revision"] = self._present()

    def clean(self) -> dict[str, Any]:
        values: dict[str, Any] = super().clean() or self.cleaned_data
        seen = values.pop("revision", None)
        present = self._present()
        if self.instance.pk and seen not in (None, "", present):
            # The form is shown again with the present revision, so that saving it again overwrites the change.
            data = self.data.copy()  # type: ignore[attr-defined]  # the data of a submitted form is a QueryDict
            data["revision"] = str(present)
            self.data = data
            text = _("This has changed since you opened the form. Save again to replace the saved version.")
            link = _("Open the saved version in a new tab")
            self.add_error(None, format_html('{} <a href="?" target="_blank">{}</a>', text, link))
        return values

    @cached_property
    def changed_data(self) -> list[str]:
        """Return the names of changed fields for the logs, to which the revision does not belong."""
        return [name for name in super().changed_data if name != "revision"]

    def _present(self) -> Any:
        return getattr(self.instance, self.revision_column)  # Django reads the row for each request


class DigestedForm(RevisedForm):
    """A form of rows without a revision. A digest of the values that the form shows serves as the revision."""

    revision = forms.CharField(widget=forms.HiddenInput, required=False)
    # Fields that the form shows, but does not change.
    not_digested: tuple[str, ...] = ()

    def _present(self) -> str:
        shown = {name: _text(value) for name, value in self.initial.items() if name not in self.not_digested}
        shown.pop("revision", None)
        return sha256(json.dumps(shown, sort_keys=True).encode()).hexdigest()


class SeenForm(forms.Form):
    """A form that submits a digest of each value that the user has seen, to find what has changed since.

    The values themselves would double the size of the form, and a form with a long text could not be sent.
    """

    # The fields with such a digest.
    compared: Collection[str] = ()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in [name for name in self.fields if name in self.compared]:
            digest = self.digest(name, self.initial.get(name))
            # Browsers restore fields of this name with the input; see static/js/ui/submitted.js.
            self.fields[f"initial-{name}"] = forms.CharField(widget=forms.HiddenInput, required=False, initial=digest)

    @cached_property
    def changed_data(self) -> list[str]:
        """Return the names of the fields whose entered value is not the one that the user has seen."""
        names = [name for name in self.fields if name in self.compared]
        return [name for name in names if self.digest(name, self[name].data) != self._seen(name)]

    def changed_since(self, present: Mapping[str, Any]) -> list[str]:
        """Return the names of the fields whose present value is neither the one that was seen nor the entered one."""
        names = [name for name in self.fields if name in self.compared]
        digests = {name: self.digest(name, present[name]) for name in names}
        return [name for name in names if digests[name] not in (self._seen(name), self.digest(name, self[name].data))]

    def digest(self, name: str, value: Any) -> str:
        """Return the digest of a value of a field. Different forms of the same value have the same one."""
        try:
            value = self.fields[name].clean(value)
        except forms.ValidationError:
            value = str(value)
        return sha256(json.dumps(value).encode()).hexdigest()

    def _seen(self, name: str) -> str:
        seen = self.data.get(f"initial-{name}")
        return self.digest(name, self.initial.get(name)) if seen is None else str(seen)


def _text(value: Any) -> Any:
    """Return a value of a form as JSON. Related rows are returned in a fixed order."""
    if isinstance(value, list | tuple):
        return sorted(map(_text, value))
    return str(value.pk) if isinstance(value, Model) else str(value)
