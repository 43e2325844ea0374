"""The configuration of web search."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from agents.key_variables import not_set
from agents.toolbox.address_policy import host_pattern
from agents.web_addresses import parse_address

ServiceType = Literal["searxng", "brave", "tavily"]
MAX_RESULTS = 20
DEFAULT_KEYS: Mapping[ServiceType, str] = {"brave": "BRAVE_API_KEY", "tavily": "TAVILY_API_KEY"}
DEFAULT_URLS: Mapping[ServiceType, str] = {
    "brave": "https://api.search.brave.com/res/v1",
    "tavily": "https://api.tavily.com",
}


def _address(value: str) -> str:
    url = parse_address(value)
    if url.scheme not in ("http", "https") or not url.host or url.raw_user or url.raw_password or url.raw_query_string:
        raise ValueError("must be a web address without a password that begins with http:// or https://")
    return value.rstrip("/")


class SearchConfig(BaseModel):
    """The service that `web_search` uses."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: ServiceType
    # Required for SearXNG. For the other services, this can be the address of a proxy.
    base_url: Annotated[str, AfterValidator(_address)] | None = None
    # The hosts whose IP address need not be public.
    internal_hosts: tuple[Annotated[str, AfterValidator(host_pattern)], ...] = ()
    api_key_env: str = ""
    results: Annotated[int, Field(ge=1, le=MAX_RESULTS)] = 8
    # The most seconds for one search.
    timeout: Annotated[float, Field(gt=0, le=120)] = 15.0
    # Passed unchanged to the service.
    options: dict[str, Any] = {}

    @property
    def key_name(self) -> str:
        """The environment variable that has the key, or "" if none is needed."""
        return self.api_key_env or DEFAULT_KEYS.get(self.type, "")

    @property
    def url(self) -> str:
        return self.base_url or DEFAULT_URLS.get(self.type, "")


def problems(search: SearchConfig, env: Mapping[str, str]) -> Iterator[str]:
    """Yield the problems that pydantic does not find, each as "key: what is wrong and what to do"."""
    if not search.url:
        yield f"search.base_url: the address of the {search.type} server is missing; add it"
    if search.key_name and not env.get(search.key_name, "").strip():
        yield f"search.api_key_env: {not_set(search.key_name)}; set it to the key, or remove [search]"
