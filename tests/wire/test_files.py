"""Files in requests to the vendors, through their SDKs and a real socket."""

from __future__ import annotations

import json
from base64 import b64encode
from contextlib import aclosing

import pytest

from agents.messages import File, Message, Text
from tests.support import files
from tests.wire import Reply, WireServer
from tests.wire.vendors import Vendor, ask, done, request

PICTURE = File("image", "a.png", "image/png", b64encode(files.picture()).decode(), "80×60")
PAPER = File("pdf", "Übersicht 📄.pdf", "application/pdf", b64encode(files.pdf("Hello")).decode(), "1 page")


async def test_files_reach_the_vendor_as_they_are(wire: WireServer, vendor: Vendor) -> None:
    """CTX-02: the request keeps the vendor's rules and has every byte of the files."""
    provider = vendor.make(wire)
    wire.script(Reply(vendor.text("A red corner.")))
    asked = request(Message("user", (Text("[Image a.png, 80×60]"), PICTURE, PAPER, Text("What is it?"))))
    done(await ask(provider, asked))
    sent = json.dumps((await wire.received(1)).body)
    assert sent.count(PICTURE.data) == sent.count(PAPER.data) == 1
    await provider.close()


# It may block for some milliseconds, because the SDKs offer no other way.
@pytest.mark.filterwarnings("ignore:Sending a large body directly:ResourceWarning")
async def test_a_large_request_is_sent_whole(wire: WireServer, vendor: Vendor) -> None:
    """CTX-02: a request with the maximum size of files is sent."""
    large = File("pdf", "b.pdf", "application/pdf", b64encode(b"%PDF-" + bytes(8 * 1024 * 1024)).decode())
    provider = vendor.make(wire)
    wire.script(Reply(vendor.text("Long.")))
    async with aclosing(provider.stream(request(Message("user", (large, Text("Read it.")))))) as events:
        heard = [event async for event in events]
    done(heard)
    assert large.data in json.dumps((await wire.received(1)).body)
    await provider.close()
