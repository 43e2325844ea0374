"""A local server with the model vendors' real streaming formats, which is as strict as they are."""

from tests.wire.script import Cut, Pause, Reply, Step
from tests.wire.server import Received, WireServer

__all__ = ["Cut", "Pause", "Received", "Reply", "Step", "WireServer"]
