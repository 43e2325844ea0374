"""Work before the first request: loading modules that it needs, and tuning the garbage collector."""

from __future__ import annotations

import gc

from agents.sandbox import probe
from chat.agents_setup import registry


def warm_up() -> None:
    """Load the providers' SDKs, which takes a second, try a sandbox, and freeze all objects that exist now.

    These objects stay until the process ends, so the garbage collector need not check them again. Objects of streams
    are freed by reference counts. A full collection pauses all streams, so it is made rare.
    """
    for name in {registry().preset().provider, *(model.provider for model in registry().known_models())}:
        registry().provider(name).prepare()
    probe.problem()
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
