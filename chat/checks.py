"""System checks: report configuration errors at startup, with remedies."""

from __future__ import annotations

import ipaddress
import os
import sqlite3
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
from config.addresses import host_name, leads_nowhere
from config.data_folder import MIN_KEY_LENGTH, OWNER_ONLY_FOLDER

MIN_LEASE = 2.0
# The first SQLite with RETURNING, with which runs write their rows.
OLDEST_SQLITE = (3, 35)
SET_SUBJECT = "Set VAPID_SUBJECT to mailto:NAME@DOMAIN or to an address that begins with https://."
# The tag of the checks that commands on stored data need. The others are about agents and about serving.
DATA = "data"
WORKERS_SIGN = "WEB_CONCURRENCY={}"
IN_A_UNIT = " If a systemd unit starts Parley, allow the folder in it with ReadWritePaths (see docs/deployment.md)."


@register()
def configuration(**kwargs: Any) -> list[CheckMessage]:
    """Check that the providers, models and agents can be read."""
    from chat.agents_setup import registry  # here, because it loads the vendors' SDKs, which most commands do not need

    try:
        registry()
    except ConfigError as error:
        return [Error(str(error), id="parley.E001")]
    return []


@register()
def sandbox(**kwargs: Any) -> list[CheckMessage]:
    """Warn if agents may run commands, but this machine has no sandbox for them."""
    from agents.sandbox import probe
    from agents.toolbox import SANDBOX_TOOLS
    from chat.agents_setup import registry

    needed = {tool.name for tool in SANDBOX_TOOLS}
    if not settings.PARLEY_CONFIG:  # the operator has not configured agents
        return []
    try:
        agents = [preset.name for preset in registry().presets() if needed & set(preset.tools)]
    except ConfigError:  # reported above
        return []
    problem = probe.problem() if agents else ""
    if not problem:
        return []
    text = (
        f"This machine cannot run commands in a sandbox: {problem}. "
        f"These agents run without their sandbox tools: {', '.join(agents)}."
    )
    return [Warning(text, hint="See docs/sandbox.md for what the machine needs.", id="parley.W006")]


@register()
def web_search(**kwargs: Any) -> list[CheckMessage]:
    """Warn if agents may search the web, but no search service is configured."""
    from agents.toolbox import SEARCH
    from chat.agents_setup import registry

    try:
        agents = [preset.name for preset in registry().presets() if SEARCH in preset.tools]
        if not agents or registry().searches:
            return []
    except ConfigError:  # reported above
        return []
    text = f"No search service is configured. These agents run without {SEARCH}: {', '.join(agents)}."
    hint = "Add a [search] section to the configuration file. See docs/tools.md."
    return [Warning(text, hint=hint, id="parley.W008")]


@register()
def added_tools(**kwargs: Any) -> list[CheckMessage]:
    """Check that the operator's own tools can be loaded."""
    from chat.agents_setup import registry

    try:
        problems, presets = registry().tool_problems, registry().presets()
    except ConfigError:  # reported above
        return []
    folder = settings.TOOLS_FOLDER
    if folder and not os.path.isdir(folder):  # `Path.is_dir` raises if a parent cannot be read
        hint = "Set TOOLS_FOLDER to a folder with your tools, or unset it."
        return [Error(f"TOOLS_FOLDER={folder} is not a folder.", hint=hint, id="parley.E019")]
    hint = "See docs/tools.md for how to write a tool. Parley starts without it."
    texts = [f"A tool was not loaded. {why}." for why in problems]
    for preset in presets if problems else ():
        if missing := [name for name in preset.tools if not (registry().may_be_tool(name) or is_delegate(name))]:
            texts.append(f"The agent {preset.name} runs without these tools, which do not exist: {', '.join(missing)}.")
    return [Warning(text, hint=hint, id="parley.W009") for text in texts]


@register()
def mcp_servers(**kwargs: Any) -> list[CheckMessage]:
    """Warn about MCP servers that cannot work on this machine, without connecting to them."""
    from chat.agents_setup import registry

    try:
        found = list(registry().servers.problems())
    except ConfigError:  # reported above
        return []
    hint = "See docs/mcp.md for what a server needs. Agents run without its tools."
    return [Warning(f"The MCP server {name} cannot start: {why}.", hint=hint, id="parley.W007") for name, why in found]


@register()
def folders(**kwargs: Any) -> list[CheckMessage]:
    """Check that Parley can write to its folders."""
    places = {Path(settings.DATA_DIR): "PARLEY_DATA"}
    if connection.vendor == "sqlite":
        places.setdefault(Path(connection.settings_dict["NAME"]).parent, "DATABASE_URL")
    # `Path.exists` raises if a parent cannot be read.
    if os.path.exists(settings.PREPARED_STATIC):
        places[Path(settings.PREPARED_STATIC)] = "PARLEY_DATA"
    workspaces = Path(settings.WORKSPACES)
    if os.path.exists(workspaces) or Path(settings.DATA_DIR) not in workspaces.parents:
        places.setdefault(workspaces, "WORKSPACES")
    return [
        Error(
            f"Parley cannot write to {place}: {problem}.",
            hint=f"Make it writable, or set {name} to another folder." + (IN_A_UNIT if "Read-only" in problem else ""),
            id="parley.E002",
        )
        for place, name in places.items()
        if (problem := _problem_with(place))
    ]


@register(DATA)
def sqlite(**kwargs: Any) -> list[CheckMessage]:
    """Check that Python's SQLite can run all statements. With an older one, agents' answers could not be written."""
    if connection.vendor != "sqlite" or sqlite3.sqlite_version_info >= OLDEST_SQLITE:
        return []
    needed = ".".join(map(str, OLDEST_SQLITE))
    text = f"Python has SQLite {sqlite3.sqlite_version}, but Parley needs {needed} or newer."
    hint = "Use a Python with a newer SQLite, such as one of python.org or uv, or set DATABASE_URL to PostgreSQL."
    return [Error(text, hint=hint, id="parley.E022")]


@register()
def key(**kwargs: Any) -> list[CheckMessage]:
    """Warn if SECRET_KEY, which signs sessions, is short enough to be guessed."""
    if len(settings.SECRET_KEY) >= MIN_KEY_LENGTH:
        return []
    text = (
        f"SECRET_KEY has only {len(settings.SECRET_KEY)} characters. "
        "An attacker who guesses it can sign in as any user."
    )
    hint = "Set it to 50 random characters, or unset it: Parley then generates its own."
    return [Warning(text, hint=hint, id="parley.W005")]


@register()
def push_messages(**kwargs: Any) -> list[CheckMessage]:
    """Check that push messages can be signed, and name a contact for push services."""
    key, subject = settings.VAPID_PRIVATE_KEY, settings.VAPID_SUBJECT
    random = "Set VAPID_PRIVATE_KEY to 32 random bytes in Base64: openssl rand -base64 32."
    if not key:  # REDIS_URL is set
        if os.environ.get("VAPID_SUBJECT"):
            text = "VAPID_SUBJECT is set, but VAPID_PRIVATE_KEY is not: push notifications cannot be sent."
            return [Error(text, hint=random, id="parley.E015")]
        text = "VAPID_PRIVATE_KEY is not set: users get no notifications while Parley is closed."
        hint = "Set it to the same 32 random bytes in Base64 on all machines: openssl rand -base64 32."
        if not subject:
            hint += f" {SET_SUBJECT}"  # with the key alone, Parley would not start
        return [Warning(text, hint=hint, id="parley.W010")]
    try:
        web_push.check_private_key(key)
    except ValueError as error:
        return [Error(f"VAPID_PRIVATE_KEY is not a valid key: {error}.", hint=random, id="parley.E014")]
    return _problems_of_contact(subject)


def _problems_of_contact(subject: str) -> list[CheckMessage]:
    if subject and not subject.startswith(("mailto:", "https://")):
        text = f"VAPID_SUBJECT={subject} is not a mailto: or https:// address."
        return [Error(text, hint=SET_SUBJECT, id="parley.E016")]
    if os.environ.get("VAPID_PRIVATE_KEY") and not subject:
        text = "VAPID_PRIVATE_KEY is set, but push services need a contact, and VAPID_SUBJECT is not set."
        return [Error(text, hint=SET_SUBJECT, id="parley.E017")]
    if not leads_nowhere(subject):
        return []
    if os.environ.get("VAPID_SUBJECT"):
        text = f"VAPID_SUBJECT={subject} has no host on the internet, so Apple's push service refuses all messages: "
        text += "Safari and iPhones get no notifications."
        return [Warning(text, hint=SET_SUBJECT, id="parley.W013")]
    # Without HTTPS, only browsers on this machine have notifications.
    if not settings.HTTPS and not any(origin.startswith("https://") for origin in settings.CSRF_TRUSTED_ORIGINS):
        return []
    text = "Apple's push service refuses messages without a contact, so Safari and iPhones get no notifications."
    hint = "Set PUBLIC_URL to the address at which users reach Parley, such as https://chat.example.org, or set "
    hint += "VAPID_SUBJECT to mailto:NAME@DOMAIN."
    return [Warning(text, hint=hint, id="parley.W013")]


@register()
def traces(**kwargs: Any) -> list[CheckMessage]:
    """Check that the address for traces is a web address, and that the package that sends traces is installed."""
    address: str = settings.OTEL_EXPORTER_OTLP_ENDPOINT
    if address and not address.startswith(("http://", "https://")):
        text = "OTEL_EXPORTER_OTLP_ENDPOINT must be a web address."
        return [Error(text, hint="Set it to an address such as http://collector:4318, or unset it.", id="parley.E021")]
    if not (missing := tracing.missing_package()):
        return []
    text = f"OTEL_EXPORTER_OTLP_ENDPOINT is set, but the package {missing} is not installed."
    hint = "Install requirements/tracing.txt, or unset OTEL_EXPORTER_OTLP_ENDPOINT."
    return [Error(text, hint=hint, id="parley.E013")]


@register(DATA)
def files(**kwargs: Any) -> list[CheckMessage]:
    """Check that the S3 settings fit together, and that the S3 client is installed."""
    problem, hint = _problem_of_s3()
    return [Error(problem, hint=hint, id="parley.E018")] if problem else []


def _problem_of_s3() -> tuple[str, str]:
    """Return a problem with the S3 settings and its remedy, or two empty strings."""
    if not settings.S3_BUCKET:
        names = ("S3_ENDPOINT", "S3_REGION", "S3_ACCESS_KEY_ID", "S3_SECRET_ACCESS_KEY", "S3_PREFIX")
        unused = next((name for name in names if getattr(settings, name)), "")
        hint = f"Set S3_BUCKET too, or unset {unused}."
        text = f"{unused} is set, but S3_BUCKET is not: files would be stored in a local folder."
        return (text, hint) if unused else ("", "")
    if bool(settings.S3_ACCESS_KEY_ID) != bool(settings.S3_SECRET_ACCESS_KEY):
        hint = "Set both, or neither if the machine has a role with access to the bucket."
        return "Only one of S3_ACCESS_KEY_ID and S3_SECRET_ACCESS_KEY is set.", hint
    if settings.S3_ENDPOINT and not settings.S3_ENDPOINT.startswith(("http://", "https://")):
        hint = "Set it to an address such as https://s3.example.org."
        return f"S3_ENDPOINT={settings.S3_ENDPOINT} is not a web address.", hint
    if find_spec("botocore") is None:
        return "S3_BUCKET is set, but the package botocore is not installed.", "Install requirements/s3.txt."
    return "", ""


@register()
def lease(**kwargs: Any) -> list[CheckMessage]:
    """Check that a busy worker has enough time to renew its lease."""
    if settings.LEASE_SECONDS >= MIN_LEASE:
        return []
    text = f"LEASE_SECONDS={settings.LEASE_SECONDS} is too short: a busy worker would lose its sessions."
    return [Error(text, hint=f"Set it to {MIN_LEASE} or more; 10 is a good value.", id="parley.E003")]


@register()
def processes(**kwargs: Any) -> list[CheckMessage]:
    """Check that several processes share a database, Redis, and the key that signs sessions."""
    signs = [name for name, holds in _signs_of_several_processes().items() if holds]
    if not signs:
        return []
    several = signs[0]
    found: list[CheckMessage] = []
    if connection.vendor == "sqlite":
        text = f"With {several}, Parley runs as several processes, which need PostgreSQL instead of SQLite."
        found.append(Error(text, hint="Set DATABASE_URL to a PostgreSQL database.", id="parley.E008"))
    if not settings.REDIS_URL:
        text = (
            f"With {several}, Parley runs as several processes. "
            "Without Redis, a page shows only what its own process does."
        )
        found.append(Error(text, hint="Set REDIS_URL to a Redis server.", id="parley.E009"))
    if not os.environ.get("SECRET_KEY") and signs != [WORKERS_SIGN.format(os.environ.get("WEB_CONCURRENCY"))]:
        text = (
            f"With {several}, Parley runs as several processes, but SECRET_KEY is not set: "
            "each machine would generate its own."
        )
        hint = (
            "Set SECRET_KEY to the same value on all machines. If one process alone has run on this database until "
            "now, its key is in PARLEY_DATA/secret_key."
        )
        found.append(Error(text, hint=hint, id="parley.E010"))
    return found


@register()
def limits(**kwargs: Any) -> list[CheckMessage]:
    """Check that LIMITS and QUOTAS can be parsed."""
    try:
        rates()
    except ValueError as error:
        text = f"LIMITS={settings.LIMITS} is not valid: {error}."
        hint = f'Use a form such as "sends=60/minute, forks=0". The limits are: {", ".join(RATES)}.'
        return [Error(text, hint=hint, id="parley.E006")]
    try:
        quotas()
    except ValueError as error:
        text = f"QUOTAS={settings.QUOTAS} is not valid: {error}."
        hint = f'Use a form such as "tokens_per_day=5000000". The quotas are: {", ".join(Quotas.__slots__)}.'
        return [Error(text, hint=hint, id="parley.E007")]
    return []


@register()
def exposure(**kwargs: Any) -> list[CheckMessage]:
    """Warn about insecure or incomplete settings if the server accepts connections from other machines."""
    if _is_loopback(settings.HOST):
        return []
    try:
        host_name(settings.HOST)
    except ValueError:
        hint = "Set it to 127.0.0.1, or to 0.0.0.0 to listen on all networks of this machine."
        return [Error(f"HOST={settings.HOST} is not a host name or an IP address.", hint=hint, id="parley.E020")]
    return list(_exposure_warnings())


@register()
def proxy(**kwargs: Any) -> list[CheckMessage]:
    """Warn if only one of PUBLIC_URL and HTTPS says that a TLS proxy is in front of Parley."""
    is_public = settings.PUBLIC_URL.startswith("https://")
    if is_public and not settings.HTTPS:
        text = (
            f"PUBLIC_URL={settings.PUBLIC_URL} begins with https://, but HTTPS=1 is not set: browsers also send "
            "cookies over plain HTTP, and all users share the proxy's address in rate limits."
        )
        return [Warning(text, hint="Set HTTPS=1 if a TLS proxy is in front of Parley.", id="parley.W011")]
    if settings.HTTPS and not is_public:
        text = "HTTPS=1 is set, but PUBLIC_URL does not begin with https://: printed sign-in links do not work."
        hint = "Set PUBLIC_URL to the address at which users reach Parley, such as https://chat.example.org."
        return [Warning(text, hint=hint, id="parley.W012")]
    return []


def _exposure_warnings() -> Iterator[CheckMessage]:
    if not settings.HTTPS:
        text = (
            f"With HOST={settings.HOST}, other machines connect over plain HTTP: "
            "anyone on the network can read messages and passwords."
        )
        yield Warning(text, hint="Put a TLS proxy in front of Parley and set HTTPS=1.", id="parley.W003")
    if settings.DEBUG:
        text = f"DEBUG=1 with HOST={settings.HOST} shows source code and settings to other machines."
        yield Error(text, hint="Unset DEBUG or HOST.", id="parley.E004")
    if set(settings.ALLOWED_HOSTS) <= {"localhost", "127.0.0.1", "[::1]", "0.0.0.0", "::"}:  # noqa: S104  # compared
        text = (
            f"With HOST={settings.HOST}, other machines can connect, but ALLOWED_HOSTS has no name that they could use."
        )
        yield Warning(text, hint="Set PUBLIC_URL, or add this machine's names to ALLOWED_HOSTS.", id="parley.W004")


def _signs_of_several_processes() -> dict[str, bool]:
    workers = os.environ.get("WEB_CONCURRENCY", "")  # uvicorn's own variable
    return {
        "RUNNER=none": settings.RUNNER == "none",
        "runagents": sys.argv[1:2] == ["runagents"],
        WORKERS_SIGN.format(workers): workers not in {"", "0", "1"},
    }


def _problem_with(folder: Path) -> str:
    """Return why a folder is not writable, or "" if it is. The folder is created if it does not exist."""
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
