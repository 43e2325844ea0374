"""Load what the first answer needs before it is asked for, then calm the garbage collector."""

from __future__ import annotations

import gc

from agents.sandbox import probe
from chat.agents_setup import registry


def warm_up() -> None:
    """Load the providers' SDKs, which take a second, try a sandbox, and freeze what is loaded by now.

    That stays for good, so the collector need not look at it again, and what streams through is freed by its reference
    counts. A full collection stops every stream for a while, so it comes seldom.
    """
    for name in {registry().preset().provider, *(model.provider for model in registry().known_models())}:
        registry().provider(name).prepare()
    probe.problem()
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
