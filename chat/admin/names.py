"""What the admin calls the models, in the reader's language."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db.models import Model

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise


def call_fields(model: type[Model], /, **words: _StrPromise) -> None:
    """Name columns of a model, by their names in the database."""
    for name, said in words.items():
        model._meta.get_field(name).verbose_name = said  # type: ignore[union-attr]  # none of them is a relation's far end


def call(model: type[Model], one: _StrPromise, many: _StrPromise) -> None:
    """Name a model. Said here and not in its Meta: words are no matter of the database, and want no migration."""
    model._meta.verbose_name, model._meta.verbose_name_plural = one, many
