"""Describe each setting that Parley reads from the environment; docs/configuration.md is generated from this table.

Names, types and literal defaults come from config/settings.py itself. `scripts/configuration` writes the page.
"""

from __future__ import annotations

from typing import NamedTuple


class Option(NamedTuple):
    """What a setting does, and its default where that is not a literal in config/settings.py."""

    description: str
    default: str = ""


OPTIONS = {
    "HOST": Option("The address on which Parley listens."),
    "PORT": Option("The port on which Parley listens; `0` takes any free one."),
    "WEB_SERVER": Option("The server that `make run` starts: `uvicorn` or `daphne`."),
    "PUBLIC_URL": Option(
        "The address at which users reach Parley, if it is not `http://HOST:PORT`. "
        "It appears in printed links, and its host name is allowed."
    ),
    "HTTPS": Option("`1` behind a TLS proxy: cookies over HTTPS only, and the proxy's `X-Forwarded-Proto` is trusted."),
    "HSTS_SECONDS": Option("With `HTTPS=1`: how long browsers use only HTTPS for this host; `0` sends no such header."),
    "ALLOWED_HOSTS": Option(
        "The host names under which Parley answers, separated by commas.", "this machine, `HOST`, `PUBLIC_URL`'s name"
    ),
    "CSRF_TRUSTED_ORIGINS": Option("The addresses from which forms are accepted, separated by commas.", "`PUBLIC_URL`"),
    "PARLEY_DATA": Option("The folder of the database, the attached files and the keys that Parley makes.", "`var`"),
    "DATABASE_URL": Option(
        "`sqlite:////path/to/file` or `postgres://user:password@host:port/name`.", "SQLite in `PARLEY_DATA`"
    ),
    "S3_BUCKET": Option(
        "The bucket of an S3 server in which [attached files](deployment.md#files-on-s3) are kept. Several machines "
        "need one, or a shared `files` in `PARLEY_DATA`.",
        "a folder: `files` in `PARLEY_DATA`",
    ),
    "S3_ENDPOINT": Option("The address of the S3 server: `https://s3.example.org`.", "Amazon's, in `S3_REGION`"),
    "S3_REGION": Option("The region of the bucket."),
    "S3_ACCESS_KEY_ID": Option(
        "The id of the key for the bucket, which may list, read, write and delete.",
        "what Amazon's tools find, such as the machine's role",
    ),
    "S3_SECRET_ACCESS_KEY": Option("The secret of that key."),
    "S3_PREFIX": Option("The beginning of all names in the bucket, so that several installations can share it."),
    "BACKUPS": Option(
        "How many copies of the SQLite database are kept. A start makes one before a migration; `0`: none."
    ),
    "REDIS_URL": Option("The Redis server. Required when there are several server processes."),
    "REDIS_PREFIX": Option("Separates several installations that use one Redis."),
    "SECRET_KEY": Option(
        "Signs logins and encrypts stored secrets; several machines must share one. See "
        "[Another SECRET_KEY](deployment.md#another-secret_key).",
        "made once, in `PARLEY_DATA`",
    ),
    "SECRET_KEY_FALLBACKS": Option(
        "Earlier keys, separated by commas: what they have signed and encrypted stays valid."
    ),
    "REQUIRE_MFA": Option("Who must have two-step verification: `none`, `staff` or `all`."),
    "SECURITY_LOG_DAYS": Option("How many days the security log keeps an event; `0` keeps all."),
    "PARLEY_CONFIG": Option("The [file](models.md) with providers, models and agents."),
    "TITLES": Option("How a session gets its title after its first turn: from its `model`, or its first `words`."),
    "TOOLS_FOLDER": Option("A folder of Python files with [tools of your own](tools.md#tools-of-your-own)."),
    "WORKSPACES": Option(
        "The folder of the files of [commands](sandbox.md), with one folder for each session. "
        "Several machines must share one.",
        "`workspaces` in `PARLEY_DATA`",
    ),
    "SANDBOX_NETWORK": Option(
        "`1` lets [commands](sandbox.md) of agents use the network: the internet, and the services of this machine."
    ),
    "MCP_INTERNAL_HOSTS": Option(
        "The hosts with an internal address, or without HTTPS, that [MCP servers of workspaces](mcp.md#in-the-page) "
        "may have, separated by commas: `tickets.lan, *.example.lan`."
    ),
    "WEBHOOK_INTERNAL_HOSTS": Option(
        "The hosts with an internal address, or without HTTPS, that [webhooks](webhooks.md) may have, "
        "separated by commas."
    ),
    "RUNNER": Option("`embedded`, or `none`: this server leaves the agents to another one on the same database."),
    "SEND_WITHOUT_APPROVAL": Option(
        "`1`: [text from elsewhere](tools.md#text-from-elsewhere) is no reason to ask before a tool sends data out."
    ),
    "CAPACITY": Option(
        "How many sessions one process runs at once. Further ones wait for a free place or for another process; "
        "250 for each processor core is a good value for a team."
    ),
    "CHECK_CONTEXT_CACHE": Option(
        "`1`: compare the messages that a process keeps in memory for the next request with the stored ones each time. "
        "A difference ends the turn with an error. For finding faults in Parley: it costs what the memory saves."
    ),
    "GRACE_SECONDS": Option(
        "How long a process that is asked to stop lets running turns continue. Other processes continue what is left.",
        "`300` with `REDIS_URL`, else `0`",
    ),
    "ANSWER_DAYS": Option(
        "How many days an agent waits for an [answer](tools.md#questions) before it goes on without one; `0`: for ever."
    ),
    "RECOVERY": Option("What happens to a turn whose process died: `resume` it, or `close` it as interrupted."),
    "STATEMENT_SECONDS": Option(
        "How long PostgreSQL may work on one statement of a request; after that the answer is 503. `0`: no limit."
    ),
    "LEASE_SECONDS": Option("How long after its last renewal a worker loses the sessions that it runs."),
    "MAX_MESSAGE_CHARS": Option(
        "The longest message that a user may send. Markdown after its first 100,000 characters is shown as source."
    ),
    "MAX_ATTACHMENT_MB": Option("The largest file that a user may attach to a message."),
    "MAX_IMPORT_MB": Option("The largest file of conversations that a user may import, unpacked."),
    "PURGE_AFTER_DAYS": Option(
        "Deleted sessions and removed messages are deleted permanently after this many days; `0` or empty: never."
    ),
    "RETENTION_DAYS": Option(
        "[`manage.py prune`](deployment.md#retention) deletes sessions without a change for this many days; `0`: none."
    ),
    "SOCKETS_PER_USER": Option("How many sockets a user may have open in each process; `0`: any number."),
    "STREAMS_PER_USER": Option(
        "How many event streams and API requests with `wait` a user may have open in each process; `0`: any number."
    ),
    "LIMITS": Option(
        "Overrides of the [rate limits](deployment.md#rate-limits): `sends=60/minute, forks=0`; `0`: no limit."
    ),
    "QUOTAS": Option(
        "Overrides of a user's [quotas](deployment.md#quotas): `tokens_per_day=5000000, running_turns=10`; "
        "`0`: no limit."
    ),
    "MIN_FREE_DISK_MB": Option(
        "With less free disk than this, uploads, imports, forks and long messages are refused; `0`: never."
    ),
    "CONNECTIONS_PER_ADDRESS": Option(
        "How many connections one client address may have; `0`: any number. Not counted with `HTTPS=1`: the proxy must."
    ),
    "MONITORING_PORT": Option(
        "The port on which this process answers [`/metrics`, `/healthz` and `/readyz`](monitoring.md), apart from its "
        "pages; `0`: none. Processes on one machine need different ones."
    ),
    "MONITORING_HOST": Option("The address of `MONITORING_PORT`. Only your monitoring may reach it.", "`HOST`"),
    "OTEL_EXPORTER_OTLP_ENDPOINT": Option(
        "The address of an OpenTelemetry collector that gets [traces](monitoring.md#traces): `http://collector:4318`."
    ),
    "VAPID_PRIVATE_KEY": Option(
        "Signs [push notifications](deployment.md#notifications): 32 random bytes in Base64. Several machines must "
        "share one; with `REDIS_URL` and without a key there are none. After a change every user turns them on again.",
        "made once, in `PARLEY_DATA`; none with `REDIS_URL`",
    ),
    "VAPID_SUBJECT": Option(
        "How the operators of push services can reach you: `mailto:admin@example.org`, or an address with `https:`.",
        "`PUBLIC_URL`",
    ),
    "LOG_LEVEL": Option("`INFO`, `DEBUG`, `WARNING` or `ERROR`."),
    "LOG_FORMAT": Option("Log lines as `text` or `json`; `auto`: text on a terminal, else JSON."),
    "DEBUG": Option("`1` shows errors in the browser. For development only."),
}
# Settings that config/settings.py does not read: the agents and the Makefile do.
OTHERS = {
    "ANTHROPIC_API_KEY": Option("The key of Claude, where no configuration file names another."),
    "ANTHROPIC_BASE_URL": Option("Another address of Anthropic's API."),
    "OPENAI_API_KEY": Option("The key of OpenAI or of a compatible server."),
    "OPENAI_BASE_URL": Option("The address of a compatible server."),
    "PYTHON": Option("The interpreter with which `make` makes the environment.", "the first that is new enough"),
}
