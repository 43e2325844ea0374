"""A local server that speaks the model vendors' true streaming formats, and is as strict as they are."""

from tests.wire.script import Cut, Pause, Reply, Step
from tests.wire.server import Received, WireServer

__all__ = ["Cut", "Pause", "Received", "Reply", "Step", "WireServer"]
