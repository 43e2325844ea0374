"""How values are stored in Redis: as JSON, of which nothing can be run."""

from __future__ import annotations

import json
from typing import Any


class JsonSerializer:
    """A serializer for Django's Redis cache. Integers stay as they are: Redis counts with them."""

    def dumps(self, value: Any) -> Any:
        return value if type(value) is int else json.dumps(value)

    def loads(self, data: bytes) -> Any:
        return json.loads(data)
