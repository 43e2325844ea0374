"""The workspace of a session, repeated in rows of the session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import models

if TYPE_CHECKING:
    WholeNumber = models.BigIntegerField[int | None, int | None]
else:
    WholeNumber = models.BigIntegerField


class WorkspaceIdField(WholeNumber):
    """The `workspace_id` of a row's session, which never changes. Django's own writes fill it in.

    Statements that are not Django's have to name it. It has no index and is no foreign key: no query needs it, and each
    of them would cost every insert. It is null only where a release without this column has written the row.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(null=True, editable=False)

    def deconstruct(self) -> Any:
        """Describe the column to migrations without this class."""
        name, _path, args, options = super().deconstruct()
        return name, "django.db.models.BigIntegerField", args, options

    def pre_save(self, model_instance: models.Model, add: bool) -> Any:
        row: Any = model_instance
        if add and row.workspace_id is None and row.session_id:
            row.workspace_id = row.session.workspace_id
        return super().pre_save(row, add)
