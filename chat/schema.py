"""Compare the migrations of the database with those of this version of Parley."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules

from django.apps import apps
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

Migration = tuple[str, str]


class WrongSchemaError(Exception):
    """The database does not belong to this version of Parley. The message states what to do."""


def require_known() -> None:
    """Raise WrongSchemaError if a newer version has migrated the database, because this one would misread it."""
    if unknown := unknown_migrations():
        names = ", ".join(f"{app}.{name}" for app, name in sorted(unknown)[:3])
        raise WrongSchemaError(
            f"the database was updated by a newer version of Parley ({names}). Install that version again, or restore "
            "the backup from before the update. See “Going back” in docs/deployment.md."
        )


def require_current() -> None:
    """Raise WrongSchemaError if the database is newer or older than this version."""
    require_known()
    if missing := missing_migrations():
        raise WrongSchemaError(f"the database has {len(missing)} unapplied migration(s). Run manage.py migrate first.")


def missing_migrations() -> set[Migration]:
    """Return the migrations of this version that have not been applied to the database, as (app, name)."""
    return set(known_migrations() - applied_migrations())


def unknown_migrations() -> set[Migration]:
    """Return the migrations that have been applied to the database, but that this version does not have."""
    return applied_migrations() - known_migrations()


def applied_migrations() -> set[Migration]:
    return set(MigrationRecorder(connection).applied_migrations())


@cache
def known_migrations() -> frozenset[Migration]:
    """Return the migrations of this version by their file names, because importing them takes a second and 3 MB."""
    found = set[Migration]()
    for app in apps.get_app_configs():
        package = f"{app.name}.migrations"
        if find_spec(package) is not None:
            found |= {(app.label, module.name) for module in iter_modules(import_module(package).__path__)}
    return frozenset(found)
