"""Texts of the showcase: formulas, a table, 300 lines of code, terminal colors."""

ANSWER = """Two things happen on Fridays, and only the second one is ours:

1. **Traffic doubles** between 16:00 and 18:00, as every week.
2. The *nightly* report runs **at 16:30** since the change of 12 March, and holds a lock on `orders`.

| hour | requests/s | p50 | p99 | waiting for locks |
| --- | ---: | ---: | ---: | :---: |
| 15:00 | 112 | 38 ms | 210 ms | 0 % |
| 16:00 | 241 | 44 ms | 260 ms | 1 % |
| 16:30 | 238 | 71 ms | **4,310 ms** | **38 %** |
| 18:00 | 97 | 36 ms | 190 ms | 0 % |

The wait of a request is about $W = \\frac{\\rho}{\\mu (1 - \\rho)}$, so near $\\rho = 1$ every percent counts:

$$
\\int_0^T \\lambda(t)\\,dt \\le \\mu T
$$

```sql
SELECT pid, wait_event_type, now() - query_start AS waited
FROM pg_stat_activity
WHERE wait_event_type = 'Lock'
ORDER BY waited DESC;
```

> Move the report to 03:00, or let it read from the replica.

- [x] find the lock
- [ ] move the report
- [ ] alert on `lock_wait > 1 s`

More in [the runbook](https://example.com/runbooks/locks?team=payments&section=reports#fridays).
"""
CODE = (
    "Here is the whole module:\n\n```python\n"
    + "\n".join(
        f"def step_{number}(orders: list[Order]) -> Decimal:\n"
        f'    """Return the total of step {number}."""\n'
        f"    return sum((order.total for order in orders if order.step == {number}), Decimal(0))\n"
        for number in range(75)
    )
    + "\n```\n"
)
TERMINAL = (
    "\x1b[1m$ pytest -q\x1b[0m\n\x1b[32m...............\x1b[0m\x1b[31mF\x1b[0m\x1b[32m....\x1b[0m   [100%]\n"
    "\x1b[31;1mFAILED\x1b[0m tests/test_report.py::test_runs_at_night - assert 16 == 3\n"
    "\x1b[33m1 failed\x1b[0m, \x1b[32m19 passed\x1b[0m in 2.31s\n"
)
