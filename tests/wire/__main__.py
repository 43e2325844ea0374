"""Run the server alone: `python -m tests.wire --port 8999`."""

from __future__ import annotations

import argparse
import asyncio
import contextlib

from tests.wire.server import WireServer


async def serve(port: int) -> None:
    """Serve until interrupted; print the address on the first line."""
    async with WireServer(port, record=False) as server:
        print(f"ANTHROPIC_BASE_URL={server.anthropic_url} OPENAI_BASE_URL={server.openai_url}", flush=True)  # noqa: T201 - its only output
        await asyncio.Event().wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        prog="python -m tests.wire", description="A deterministic model behind two vendors' APIs."
    )
    parser.add_argument("--port", type=int, default=0)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(parser.parse_args().port))
