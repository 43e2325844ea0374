"""Random histories: users change a conversation in any order while the agent works, rests or crashes."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from agents.providers.scripted import ScriptedProvider
from chat import agents_setup
from chat.bus import publisher
from chat.models import MessageRevision, User
from tests.services.history import History
from tests.services.history_checks import RecordingPublisher
from tests.support.testing_node import ScriptedRegistry

pytestmark = pytest.mark.django_db
# For a long search, set more of them: PARLEY_HISTORIES=500 pytest tests/services/test_history_random.py
HISTORIES = int(os.environ.get("PARLEY_HISTORIES", "5"))


def test_session_stays_consistent_in_random_histories(ana: User, bo: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """CTX-03, MSG-03, MSG-09, MSG-11, RUN-06, RUN-12, RUN-13, RUN-15, LIVE-01: the invariants hold in random histories.

    Messages are sent, queued, stopped, retried, forked, edited, excluded, removed and restored, and processes crash and
    take over, in any order.
    """
    published = RecordingPublisher()
    monkeypatch.setattr(publisher, "publisher", published)
    agents_setup.install(ScriptedRegistry(ScriptedProvider([])))
    machine = type("AnyHistory", (History,), {"published": published, "people": [ana, bo]})
    long = settings(max_examples=HISTORIES, stateful_step_count=40, deadline=None)
    run_state_machine_as_test(machine, settings=long)
    assert MessageRevision.objects.exists()
