"""The benchmark: a Parley process on one core, and models and viewers on another (docs/performance.md)."""
