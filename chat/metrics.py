"""The metrics of this process for Prometheus, as counters and histograms.

They are always kept, which costs about a microsecond for each change. `chat/asgi/monitoring.py` serves them if
MONITORING_PORT is set, and adds those that are read on request. docs/monitoring.md describes each.
"""

from __future__ import annotations

from prometheus_client import (
    CollectorRegistry,
    Counter,
    GCCollector,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
)

# Otherwise each would have a second series with the time when the process began.
disable_created_metrics()  # type: ignore[no-untyped-call]  # it lacks its annotation
REGISTRY = CollectorRegistry()
ProcessCollector(registry=REGISTRY)
GCCollector(registry=REGISTRY)

# Buckets in seconds: for work in the database, and for what people wait for.
SHORT = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
LONG = (0.1, 0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0)

turns_started = Counter("parley_turns_started", "Turns that this worker started.", registry=REGISTRY)
turns_ended = Counter(
    "parley_turns_ended", "Turns that ended on this worker, by outcome.", labelnames=["outcome"], registry=REGISTRY
)
claims = Counter("parley_claims", "Sessions that this worker claimed.", registry=REGISTRY)
claim_seconds = Histogram(
    "parley_claim_seconds", "Time to find and claim due sessions, per attempt.", buckets=SHORT, registry=REGISTRY
)
flush_seconds = Histogram(
    "parley_flush_seconds", "Time to write one batch of changes to the database.", buckets=SHORT, registry=REGISTRY
)
first_token_seconds = Histogram(
    "parley_first_token_seconds",
    "Time from a request to the model until its first token.",
    labelnames=["provider"],
    buckets=LONG,
    registry=REGISTRY,
)
tokens = Counter(
    "parley_tokens", "Tokens used, by provider, model and kind.", ["provider", "model", "kind"], registry=REGISTRY
)
provider_errors = Counter(
    "parley_provider_errors",
    "Failed requests to model providers, retried ones included, by kind.",
    labelnames=["provider", "kind"],
    registry=REGISTRY,
)
takeovers = Counter("parley_takeovers", "Dead workers whose sessions this worker released.", registry=REGISTRY)
fenced_writes = Counter(
    "parley_fenced_writes",
    "Writes that were refused because another worker has claimed the session.",
    registry=REGISTRY,
)
slow_sockets = Counter(
    "parley_slow_sockets_closed", "Sockets that were closed because their client was too slow.", registry=REGISTRY
)
loop_lag_seconds = Histogram(
    "parley_loop_lag_seconds", "Delay of the event loop, measured twice a second.", buckets=SHORT, registry=REGISTRY
)
