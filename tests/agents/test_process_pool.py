"""Jobs in child processes: their limits, their ends and their cleanup."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from agents import process_pool
from agents.process_pool import Job, Limits, ProcessPool, WorkFailed

WORK = "tests.support.child_work"
LIMITS = Limits(cpu_seconds=0.2, seconds=20, memory_mb=128, output_bytes=1_000_000, queue_seconds=20)


@pytest.fixture(scope="module")
def pool() -> Iterator[ProcessPool]:
    """A pool that keeps its process, so that most tests need not start one."""
    made = ProcessPool(WORK, LIMITS, size=1, keep_seconds=60)
    yield made
    made.close()


def pid(pool: ProcessPool) -> int:
    [piece] = pool.run("who")
    return int(piece)


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def reason(pool: ProcessPool, function: str, *args: str | int) -> str:
    with pytest.raises(WorkFailed) as failed:
        pool.run(function, *args)
    return failed.value.reason


def test_a_function_takes_values_and_yields_pieces(pool: ProcessPool) -> None:
    assert pool.run("echo", "ä\ud800", b"\0", 1, None) == ["'ä\\ud800'".encode(), b"b'\\x00'", b"1", b"None"]


def test_a_process_is_kept_for_the_next_job(pool: ProcessPool) -> None:
    assert pid(pool) == pid(pool)


def test_a_child_knows_nothing_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """A child's environment lacks the server's keys, because a parser of foreign files must not have them."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")
    made = ProcessPool(WORK, LIMITS, size=1)  # a kept process would have the environment of its start
    found = made.run("environment")
    made.close()
    assert found
    assert b"ANTHROPIC_API_KEY" not in found


@pytest.mark.parametrize(
    ("function", "args", "why"),
    [
        ("spin_after", ["x"], "cpu"),
        ("fill_memory", [], "memory"),
        ("pour", [200_000], "output"),
        ("pour", [2_000_000], "output"),
        ("die", [], "failed"),
        ("fail", [], "failed"),
        ("write_file", [os.path.join(tempfile.gettempdir(), "parley-child")], "failed"),
    ],
)
def test_a_job_that_reaches_a_limit_ends_with_its_process(
    pool: ProcessPool, function: str, args: list[str | int], why: str
) -> None:
    """A job that reaches a limit or fails ends with its process, and the next one gets a new process."""
    before = pid(pool)
    assert reason(pool, function, *args) == why
    assert not is_alive(before)
    assert is_alive(pid(pool))


def test_what_came_before_the_limit_is_not_lost(pool: ProcessPool) -> None:
    """The results before the limit are kept: a file that is read page by page is known up to that point."""
    pieces = pool.stream("spin_after", "page 1")
    assert next(pieces) == b"page 1"
    with pytest.raises(WorkFailed, match="cpu"):
        next(pieces)


def test_a_child_that_only_waits_is_ended_by_time() -> None:
    """A child that only waits is ended after a time, because it never reaches the limit of CPU seconds."""
    pool = ProcessPool(WORK, Limits(1, 0.3, 128, 1000), size=1)
    assert reason(pool, "sleep_after", "x") == "time"


def test_the_caller_s_own_pauses_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller's pauses do not count, because an import may take longer to write than to read."""
    now, paused = time.monotonic, 0.0
    monkeypatch.setattr(process_pool, "time", SimpleNamespace(monotonic=lambda: now() + paused))
    pool = ProcessPool(WORK, Limits(1, 30, 128, 1000), size=1)
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as file, os.fdopen(writing, "wb", buffering=0) as requests:
        pieces = pool.stream("work_on_request", file=file)
        assert next(pieces) == b"first"
        paused = 60.0
        requests.write(b"!")
        assert list(pieces) == [b"second"]


def test_a_child_is_not_interrupted_with_the_server(pool: ProcessPool) -> None:
    """A child has a terminal session of its own, so Ctrl+C reaches only the server, which ends its children itself."""
    assert pool.run("terminal_session") != [str(os.getsid(0)).encode()]


def test_a_closed_iterator_kills_the_process(pool: ProcessPool) -> None:
    process = pid(pool)
    pieces = pool.stream("sleep_after", "x")
    next(pieces)
    pieces.close()  # type: ignore[attr-defined]  # a generator
    assert not is_alive(process)


async def test_cancelling_a_coroutine_kills_the_process(pool: ProcessPool) -> None:
    """Cancelling the coroutine kills the process and frees its place immediately."""
    process = pid(pool)
    work = asyncio.create_task(pool.run_async("sleep_after", "x"))
    while pool._idle:  # noqa: ASYNC110  # a thread takes it
        await asyncio.sleep(0)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert await pool.run_async("who") != [str(process).encode()]


def test_a_job_can_be_cancelled_before_it_starts(pool: ProcessPool) -> None:
    job = Job()
    job.cancel()
    with pytest.raises(WorkFailed, match="cancelled"):
        list(pool.stream("who", job=job))


def test_a_process_that_died_while_it_waited_is_replaced(pool: ProcessPool) -> None:
    process = pid(pool)
    os.kill(process, 9)
    assert pid(pool) != process


def test_places_are_bounded_and_the_wait_for_one_too() -> None:
    """The number of processes is bounded, and so is the wait for one."""
    pool = ProcessPool(WORK, Limits(1, 20, 128, 1000, queue_seconds=0.05), size=1)
    first = pool.stream("sleep_after", "x")
    next(first)
    assert reason(pool, "who") == "busy"
    first.close()  # type: ignore[attr-defined]
    assert pool.run("echo") == []


def test_a_file_is_read_by_the_child_itself() -> None:
    """The child reads the file itself, so that a large upload is not copied through the server's memory."""
    pool = ProcessPool(WORK, LIMITS, size=1)
    with tempfile.TemporaryFile() as file:
        file.write(b"conversations")
        file.flush()
        assert list(pool.stream("read", 4, file=file)) == [b"conv"]


def test_idle_processes_end_by_themselves() -> None:
    """Idle processes end, so that the server's memory is as small as before."""
    pool = ProcessPool(WORK, LIMITS, size=1, keep_seconds=0.05)
    process = pid(pool)
    timer = pool._timer
    assert timer is not None
    timer.join(20)
    assert (pool._idle, is_alive(process)) == ([], False)


def test_a_system_without_room_for_a_process_is_a_failed_job(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = ProcessPool(WORK, LIMITS, size=1)
    monkeypatch.setattr("agents.process_pool.sys.executable", "/nowhere/python")
    assert reason(pool, "who") == "failed"
