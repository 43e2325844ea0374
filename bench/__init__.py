"""The benchmark: one Parley process on one core, streaming models and viewers on the other (docs/performance.md)."""
