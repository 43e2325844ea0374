"""The cost of finding work in a database with many sessions at rest: `python -m bench.due [--sessions 1000000]`.

It uses SQLite in a temporary folder, or the PostgreSQL in DATABASE_URL (scripts/on-postgres starts one).
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable

import django

ROUNDS = 200


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.due", description=__doc__)
    parser.add_argument("--sessions", type=int, default=1_000_000)
    count = parser.parse_args().sessions
    with tempfile.TemporaryDirectory(prefix="parley-bench-") as data:
        os.environ.update(PARLEY_DATA=data, DJANGO_SETTINGS_MODULE="config.settings", STATEMENT_SECONDS="0")
        django.setup()
        _prepare(count)
        _measure(count)


def _prepare(count: int) -> None:
    from django.core.management import call_command
    from django.db import connection

    from chat.models import Session, SessionRun, User, Workspace

    call_command("migrate", verbosity=0)
    workspace, owner = Workspace.objects.create(name="Bench"), User.objects.create_user("bench")
    for start in range(0, count, 10_000):
        made = [Session(owner=owner, workspace=workspace) for _ in range(start, min(count, start + 10_000))]
        Session.objects.bulk_create(made)
        SessionRun.objects.bulk_create(SessionRun(session=each, wanted=3, done=3, epoch=3) for each in made)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


def _measure(count: int) -> None:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    from chat.runs import lease

    worker = lease.register_worker()
    asked: dict[str, Callable[[], object]] = {
        "is work due?": lease.is_work_due,
        "claim": lambda: lease.claim(worker, 20),
        "what is mine?": lambda: lease.run_rows(worker, []),
    }
    for name, ask in asked.items():
        with CaptureQueriesContext(connection) as captured:
            ask()
        (sql,) = [query["sql"] for query in captured.captured_queries if query["sql"].startswith("SELECT")]
        print(f"{connection.vendor}, {count} sessions, {name}: {_milliseconds(sql):.3f} ms")


def _milliseconds(sql: str) -> float:
    """Return the shortest time of a statement in the database, because other programs may slow the machine down."""
    from django.db import connection

    best = float("inf")
    with connection.cursor() as cursor:
        for _ in range(ROUNDS):
            if connection.vendor == "postgresql":
                cursor.execute(f"EXPLAIN ANALYZE {sql}")
                taken = float(cursor.fetchall()[-1][0].split()[2])
            else:
                began = time.perf_counter()
                cursor.execute(sql)
                cursor.fetchall()
                taken = (time.perf_counter() - began) * 1000
            best = min(best, taken)
    return best


if __name__ == "__main__":
    main()
