"""Subclasses that change internals of other libraries. Each module names what it overrides, why, and its switch.

| module | library | switch |
| --- | --- | --- |
| `sqlite/base.py` | Django's SQLite backend | `SERIALIZE_WRITES`, `GROUP_SYNC` |
| `postgres/base.py` | Django's PostgreSQL backend | `OPTIONS["limits"]` in the settings |
| `composed_queries.py` | Django's QuerySets | `COMPOSE_ONCE` |
| `whole_files.py` | WhiteNoise | `SEND_WHOLE_FILES` |
| `ninja_imports.py` | ninja | `SKIP_TEST_CLIENT` |
| `redis_layer.py` | channels-redis | the classes that the setting `CHANNEL_LAYERS` names |
| `limits_memory.py` | limits | the class that `chat/limits/counters.py` uses |

docs/performance.md lists the gain of each one. The tests of these modules fail when a library changes.
"""
