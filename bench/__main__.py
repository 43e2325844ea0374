"""The command `python -m bench [what …]`; --help lists the measurements. It needs two cores and no network."""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import tempfile

import django

from bench.machine import use_other_core

WHAT = (
    "streams",
    "most",
    "fanout",
    "starts",
    "turns",
    "stops",
    "sockets",
    "pages",
    "page",
    "growth",
    "room",
    "asking-room",
)
# This measurement needs servers besides Parley, so it only runs if it is named.
TEAM = "team"
HELP = "what to measure; everything but the team if not given"


def main() -> None:
    arguments = _arguments()
    if TEAM not in arguments.what:  # the processes of a team share the cores
        use_other_core()
    with tempfile.TemporaryDirectory(prefix="parley-bench-") as data:
        os.environ.update(PARLEY_DATA=data, DJANGO_SETTINGS_MODULE="config.settings")
        if TEAM in arguments.what:
            _measure_team(arguments)
            return
        django.setup()
        gc.freeze()
        gc.set_threshold(50_000, 20, 100)
        asyncio.run(_run(arguments))


def _measure_team(arguments: argparse.Namespace) -> None:
    from tests.support.own_postgres import own_servers  # PostgreSQL's server must be installed

    with own_servers() as (server,):
        server.create()
        server.start()
        os.environ["DATABASE_URL"] = server.address
        django.setup()
        from bench import team

        asyncio.run(team.measure(server, arguments.sessions or [50, 150]))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure one Parley process.")
    parser.add_argument("what", nargs="*", choices=[*WHAT, TEAM, []], help=HELP)
    parser.add_argument("--server", choices=("uvicorn", "daphne"), default="uvicorn")
    parser.add_argument("--provider", choices=("openai", "responses", "anthropic"), default="openai")
    parser.add_argument("--face", choices=("page", "events"), default="page")
    parser.add_argument("--sessions", type=int, nargs="+", default=None, help="how many stream, start or are stopped")
    parser.add_argument("--messages", type=int, default=0, help="how many rows the sessions have that are started")
    parser.add_argument("--beside", type=int, default=0, help="how many other sessions the database has (starts)")
    parser.add_argument("--asking", action="store_true", help="pages load their list for each change (room)")
    parser.add_argument("--seconds", type=float, default=12.0, help="how long each number of sessions is measured")
    return parser.parse_args()


async def _run(arguments: argparse.Namespace) -> None:
    from bench.stage import open_stage

    for what in arguments.what or WHAT:
        async with open_stage(arguments.server, arguments.provider, arguments.face) as stage:
            await _measure(what, stage, arguments)


async def _measure(what: str, stage: object, arguments: argparse.Namespace) -> None:
    from bench import fanout, growth, page, pages, room, sockets, starts, stops, streams, turns
    from bench.stage import Stage

    assert isinstance(stage, Stage)
    counts = arguments.sessions
    match what:
        case "streams":
            await streams.measure(stage, counts or [1, 50, 200, 285], arguments.seconds)
        case "most":
            await streams.search(stage, (counts or [285])[0], 25, arguments.seconds)
        case "fanout":
            await fanout.measure(stage, counts or [100, 500], arguments.seconds)
        case "starts":
            await starts.measure(stage, counts or [1, 20, 100], arguments.messages, arguments.beside)
        case "turns":
            await turns.measure(stage, (counts or [100])[0])
        case "stops":
            await stops.measure(stage, counts or [1, 50, 200])
        case "sockets":
            await sockets.measure(stage, (counts or [1000])[0])
        case "room":
            await room.measure(stage, counts or [200, 1000], knows_own=not arguments.asking)
        case "pages":
            await pages.measure(stage, counts or [50, 5000, 10_000])
        case "page":
            await page.measure(stage)
        case "growth":
            await growth.measure(stage)


if __name__ == "__main__":
    main()
