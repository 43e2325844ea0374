"""The workspace of a session, repeated in rows of the session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import models

if TYPE_CHECKING:
    WholeNumber = models.BigIntegerField[int | None, int | None]
else:
    WholeNumber = models.BigIntegerField


class WorkspaceIdField(WholeNumber):
    """The `workspace_id` of a row's session, which never changes. Django's own inserts set it.

    Other statements must set it themselves. It has no index and is not a foreign key, because no query needs them, and
    each would slow down every insert. It is null only in rows that a release without this column has written.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(null=True, editable=False)

    def deconstruct(self) -> Any:
        """Describe the column to migrations as a BigIntegerField, so that they do not need this class."""
        name, _path, args, options = super().deconstruct()
        return name, "django.db.models.BigIntegerField", args, options

    def pre_save(self, model_instance: models.Model, add: bool) -> Any:
        row: Any = model_instance
        if add and row.workspace_id is None and row.session_id:
            row.workspace_id = row.session.workspace_id
        return super().pre_save(row, add)
