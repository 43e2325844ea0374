"""System checks: find configuration errors at startup, with remedies."""

from __future__ import annotations

import ipaddress
import os
import sys
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register
from django.db import connection

from agents.delegates import is_delegate
from agents.errors import ConfigError
from chat.limits.quotas import Quotas, quotas
from chat.limits.rates import RATES, rates
from chat.runner import tracing
from chat.security import web_push
from config.addresses import host_name
from config.data_folder import OWNER_ONLY_FOLDER, SHORTEST_KEY

SHORTEST_LEASE = 2.0
WORKERS_SIGN = "WEB_CONCURRENCY={}"


@register()
def configuration(**kwargs: Any) -> list[CheckMessage]:
    """The providers, models and agents can be read."""
    from chat.agents_setup import registry  # it loads the vendors' SDKs, which most commands do without

    try:
        registry()
    except ConfigError as error:
        return [Error(str(error), id="parley.E001")]
    return []


@register()
def sandbox(**kwargs: Any) -> list[CheckMessage]:
    """Agents that may run commands can do so on this machine."""
    from agents.sandbox import probe
    from agents.toolbox import SANDBOX_TOOLS
    from chat.agents_setup import registry

    needed = {tool.name for tool in SANDBOX_TOOLS}
    if not settings.PARLEY_CONFIG:  # no operator has asked for them
        return []
    try:
        agents = [preset.name for preset in registry().presets() if needed & set(preset.tools)]
    except ConfigError:  # reported above
        return []
    problem = probe.problem() if agents else ""
    if not problem:
        return []
    text = f"Commands cannot run in a sandbox here: {problem}. Agents do without these tools: {', '.join(agents)}."
    return [Warning(text, hint="docs/sandbox.md says what a machine needs.", id="parley.W006")]


@register()
def web_search(**kwargs: Any) -> list[CheckMessage]:
    """Agents that may search the web have a service for it."""
    from agents.toolbox import SEARCH
    from chat.agents_setup import registry

    try:
        agents = [preset.name for preset in registry().presets() if SEARCH in preset.tools]
        if not agents or registry().searches:
            return []
    except ConfigError:  # reported above
        return []
    text = f"There is no [search] in the configuration file. Agents do without {SEARCH}: {', '.join(agents)}."
    return [Warning(text, hint="docs/tools.md says how a search service is configured.", id="parley.W008")]


@register()
def added_tools(**kwargs: Any) -> list[CheckMessage]:
    """The operator's own tools could be loaded."""
    from chat.agents_setup import registry

    try:
        problems, presets = registry().tool_problems, registry().presets()
    except ConfigError:  # reported above
        return []
    folder = settings.TOOLS_FOLDER
    if folder and not Path(folder).is_dir():
        hint = "Set TOOLS_FOLDER to a folder with your tools, or unset it."
        return [Error(f"TOOLS_FOLDER={folder} is not a folder.", hint=hint, id="parley.E019")]
    hint = "docs/tools.md says how to write one. Parley works without it."
    texts = [f"A tool is left out. {why}." for why in problems]
    for preset in presets if problems else ():
        if missing := [name for name in preset.tools if not (registry().may_be_tool(name) or is_delegate(name))]:
            texts.append(
                f"The agent {preset.name} does without these tools, which are not known: {', '.join(missing)}."
            )
    return [Warning(text, hint=hint, id="parley.W009") for text in texts]


@register()
def mcp_servers(**kwargs: Any) -> list[CheckMessage]:
    """The MCP servers can work on this machine, as far as that is known without asking them."""
    from chat.agents_setup import registry

    try:
        found = list(registry().servers.problems())
    except ConfigError:  # reported above
        return []
    hint = "docs/mcp.md says what a server needs. Agents do without its tools."
    return [Warning(f"The MCP server {name} cannot work: {why}.", hint=hint, id="parley.W007") for name, why in found]


@register()
def folders(**kwargs: Any) -> list[CheckMessage]:
    """Parley can write where it keeps its data."""
    places = {Path(settings.DATA_DIR): "PARLEY_DATA"}
    if connection.vendor == "sqlite":
        places.setdefault(Path(connection.settings_dict["NAME"]).parent, "DATABASE_URL")
    workspaces = Path(settings.WORKSPACES)
    if workspaces.exists() or Path(settings.DATA_DIR) not in workspaces.parents:
        places.setdefault(workspaces, "WORKSPACES")
    return [
        Error(f"Parley cannot write to {place}: {problem}.", hint=f"Set {name} to another place.", id="parley.E002")
        for place, name in places.items()
        if (problem := _problem_with(place))
    ]


@register()
def key(**kwargs: Any) -> list[CheckMessage]:
    """The key that signs sessions cannot be guessed."""
    if len(settings.SECRET_KEY) >= SHORTEST_KEY:
        return []
    text = f"SECRET_KEY has {len(settings.SECRET_KEY)} characters: it can be guessed, and with it anyone's sign-in."
    return [Warning(text, hint="Set a random one of 50 characters, or none: Parley makes its own.", id="parley.W005")]


@register()
def push_messages(**kwargs: Any) -> list[CheckMessage]:
    """Push messages can be signed, and say whom push services can reach."""
    key, subject = settings.VAPID_PRIVATE_KEY, settings.VAPID_SUBJECT
    random = "Set it to 32 random bytes in Base64: openssl rand -base64 32."
    if not key:  # REDIS_URL is set
        if os.environ.get("VAPID_SUBJECT"):
            text = "VAPID_SUBJECT is set, and VAPID_PRIVATE_KEY is not: no notifications can be sent."
            return [Error(text, hint=random, id="parley.E015")]
        text = "VAPID_PRIVATE_KEY is not set: Parley sends no notifications to browsers in which it is closed."
        hint = "Set it to the same 32 random bytes in Base64 everywhere: openssl rand -base64 32."
        return [Warning(text, hint=hint, id="parley.W010")]
    try:
        web_push.check_private_key(key)
    except ValueError as error:
        return [Error(f"VAPID_PRIVATE_KEY is no key for push messages: {error}.", hint=random, id="parley.E014")]
    hint = "Set it to mailto:NAME@DOMAIN or to an address that begins with https://."
    if subject and not subject.startswith(("mailto:", "https://")):
        return [Error(f"VAPID_SUBJECT={subject} is no address for push services.", hint=hint, id="parley.E016")]
    if os.environ.get("VAPID_PRIVATE_KEY") and not subject:
        text = "VAPID_PRIVATE_KEY is set, and neither VAPID_SUBJECT nor a PUBLIC_URL with https://."
        return [Error(text, hint=hint, id="parley.E017")]
    return []


@register()
def traces(**kwargs: Any) -> list[CheckMessage]:
    """What sends traces is installed, if they are wanted."""
    if not (missing := tracing.missing_package()):
        return []
    text = f"OTEL_EXPORTER_OTLP_ENDPOINT is set, and the package {missing} is not installed."
    hint = "Install requirements/tracing.txt, or unset it."
    return [Error(text, hint=hint, id="parley.E013")]


@register()
def files(**kwargs: Any) -> list[CheckMessage]:
    """The settings of an S3 server belong together, and its client is installed."""
    problem, hint = _problem_of_s3()
    return [Error(problem, hint=hint, id="parley.E018")] if problem else []


def _problem_of_s3() -> tuple[str, str]:
    """Return what is wrong with the settings of S3, and a remedy."""
    if not settings.S3_BUCKET:
        names = ("S3_ENDPOINT", "S3_REGION", "S3_ACCESS_KEY_ID", "S3_SECRET_ACCESS_KEY", "S3_PREFIX")
        unused = next((name for name in names if getattr(settings, name)), "")
        hint = f"Set S3_BUCKET too, or unset {unused}."
        return (f"{unused} is set without S3_BUCKET: files would be kept in a folder.", hint) if unused else ("", "")
    if bool(settings.S3_ACCESS_KEY_ID) != bool(settings.S3_SECRET_ACCESS_KEY):
        hint = "Set both, or neither where the machine has a role that may use the bucket."
        return "Only one of S3_ACCESS_KEY_ID and S3_SECRET_ACCESS_KEY is set.", hint
    if settings.S3_ENDPOINT and not settings.S3_ENDPOINT.startswith(("http://", "https://")):
        return f"S3_ENDPOINT={settings.S3_ENDPOINT} is no address.", "Write https://s3.example.org."
    if find_spec("botocore") is None:
        return "S3_BUCKET is set, and the package botocore is not installed.", "Install requirements/s3.txt."
    return "", ""


@register()
def lease(**kwargs: Any) -> list[CheckMessage]:
    """A worker has the time to say that it lives."""
    if settings.LEASE_SECONDS >= SHORTEST_LEASE:
        return []
    text = f"LEASE_SECONDS={settings.LEASE_SECONDS} is too short: a worker that is merely busy would lose its sessions."
    return [Error(text, hint=f"Set it to {SHORTEST_LEASE} or more; 10 is a good value.", id="parley.E003")]


@register()
def processes(**kwargs: Any) -> list[CheckMessage]:
    """Several processes have what they must share: a database, Redis, and the key that signs sessions."""
    signs = [name for name, holds in _signs_of_several_processes().items() if holds]
    if not signs:
        return []
    several = signs[0]
    found: list[CheckMessage] = []
    if connection.vendor == "sqlite":
        text = f"{several} means several processes, and SQLite serves one machine and few writers."
        found.append(Error(text, hint="Set DATABASE_URL to a PostgreSQL database.", id="parley.E008"))
    if not settings.REDIS_URL:
        text = f"{several} means several processes; without Redis a page sees only what its own process does."
        found.append(Error(text, hint="Set REDIS_URL.", id="parley.E009"))
    if not os.environ.get("SECRET_KEY") and signs != [WORKERS_SIGN.format(os.environ.get("WEB_CONCURRENCY"))]:
        text = (
            f"{several} means several processes, and SECRET_KEY is not set: each machine would make a key of its own."
        )
        hint = "Set SECRET_KEY to the same value everywhere. The file secret_key in PARLEY_DATA has the present one."
        found.append(Error(text, hint=hint, id="parley.E010"))
    return found


@register()
def limits(**kwargs: Any) -> list[CheckMessage]:
    """LIMITS and QUOTAS can be read."""
    try:
        rates()
    except ValueError as error:
        text = f"LIMITS={settings.LIMITS} cannot be read: {error}."
        hint = f'Write "sends=60/minute, forks=0". The limits are: {", ".join(RATES)}.'
        return [Error(text, hint=hint, id="parley.E006")]
    try:
        quotas()
    except ValueError as error:
        text = f"QUOTAS={settings.QUOTAS} cannot be read: {error}."
        hint = f'Write "tokens_per_day=5000000". The quotas are: {", ".join(Quotas.__slots__)}.'
        return [Error(text, hint=hint, id="parley.E007")]
    return []


@register()
def exposure(**kwargs: Any) -> list[CheckMessage]:
    """Who lets others in knows it."""
    if _is_loopback(settings.HOST):
        return []
    try:
        host_name(settings.HOST)
    except ValueError:
        hint = "Set it to 127.0.0.1, or to 0.0.0.0 for all networks of this machine."
        return [Error(f"HOST={settings.HOST} is no address of a machine.", hint=hint, id="parley.E020")]
    return list(_exposed())


def _exposed() -> Iterator[CheckMessage]:
    if not settings.HTTPS:
        text = f"HOST={settings.HOST} lets other machines in over plain HTTP: anybody on the way can read along."
        yield Warning(text, hint="Put a proxy with TLS in front and set HTTPS=1.", id="parley.W003")
    if settings.DEBUG:
        text = f"DEBUG=1 with HOST={settings.HOST} shows the inside of Parley to other machines."
        yield Error(text, hint="Unset DEBUG or HOST.", id="parley.E004")
    if set(settings.ALLOWED_HOSTS) <= {"localhost", "127.0.0.1", "[::1]", "0.0.0.0", "::"}:  # noqa: S104  # compared
        text = f"HOST={settings.HOST} lets other machines in, but ALLOWED_HOSTS refuses every name they could use."
        yield Warning(text, hint="Set PUBLIC_URL, or ALLOWED_HOSTS to this machine's names.", id="parley.W004")


def _signs_of_several_processes() -> dict[str, bool]:
    workers = os.environ.get("WEB_CONCURRENCY", "")  # uvicorn's own variable
    return {
        "RUNNER=none": settings.RUNNER == "none",
        "runagents": sys.argv[1:2] == ["runagents"],
        WORKERS_SIGN.format(workers): workers not in {"", "0", "1"},
    }


def _problem_with(folder: Path) -> str:
    """Say why nothing can be written there; empty if it can."""
    try:
        folder.mkdir(mode=OWNER_ONLY_FOLDER, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return ""
    except OSError as error:
        return error.strerror or str(error)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
