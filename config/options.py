"""Descriptions of all settings that Parley reads from the environment. docs/configuration.md is generated from them.

Names, types and literal defaults come from config/settings.py. `scripts/configuration` writes the page.
"""

from __future__ import annotations

from typing import NamedTuple


class Option(NamedTuple):
    """The description of a setting, and its default if that is not a literal in config/settings.py."""

    description: str
    default: str = ""


OPTIONS = {
    "HOST": Option("The address that Parley listens on."),
    "PORT": Option("The port that Parley listens on; `0`: any free port."),
    "WEB_SERVER": Option("The server that `make run` starts: `uvicorn` or `daphne`."),
    "PUBLIC_URL": Option(
        "The address at which users reach Parley, if it is not `http://HOST:PORT`. "
        "It appears in printed links, and its host name is allowed."
    ),
    "HTTPS": Option(
        "`1` if a TLS proxy is in front: cookies are sent over HTTPS only, and the proxy's `X-Forwarded-Proto` "
        "is trusted."
    ),
    "PROXIES": Option(
        "With `HTTPS=1`: how many addresses the proxies in front add to `X-Forwarded-For`. The first of them is taken "
        "for the client's: see [Several proxies](deployment.md#several-proxies)."
    ),
    "HSTS_SECONDS": Option(
        "With `HTTPS=1`: how long browsers must use HTTPS for this host; `0`: the header is not sent."
    ),
    "ALLOWED_HOSTS": Option(
        "The host names that Parley answers to, separated by commas. `PUBLIC_URL`'s name is always one of them.",
        "this machine, `HOST`",
    ),
    "CSRF_TRUSTED_ORIGINS": Option(
        "The addresses from which forms are accepted, separated by commas. `PUBLIC_URL` is always one of them."
    ),
    "PARLEY_DATA": Option(
        "The folder of the database, the attached files and the keys that Parley generates.",
        "`var`",
    ),
    "DATABASE_URL": Option(
        "`sqlite:////path/to/file`, with four slashes and an absolute path, or "
        "`postgres://user:password@host:port/name`. Percent-encode special characters in the password: `%40` for `@`, "
        "`%2F` for `/`.",
        "SQLite in `PARLEY_DATA`",
    ),
    "S3_BUCKET": Option(
        "The bucket of an S3 server that stores [attached files](deployment.md#files-on-s3). Several machines "
        "need a bucket, or a shared folder `files` in `PARLEY_DATA`.",
        "a folder: `files` in `PARLEY_DATA`",
    ),
    "S3_ENDPOINT": Option(
        "The address of the S3 server, such as `https://s3.example.org`.",
        "Amazon's, in `S3_REGION`",
    ),
    "S3_REGION": Option("The region of the bucket."),
    "S3_ACCESS_KEY_ID": Option(
        "The id of an access key that may list, read, write and delete in the bucket.",
        "what Amazon's tools find, such as the machine's role",
    ),
    "S3_SECRET_ACCESS_KEY": Option("The secret of the access key."),
    "S3_PREFIX": Option("A prefix for all names in the bucket, so that several installations can share it."),
    "BACKUPS": Option(
        "How many backups of the SQLite database to keep. Parley makes one at a start that updates the database; "
        "`0`: none."
    ),
    "REDIS_URL": Option("The address of the Redis server. Required with several server processes."),
    "REDIS_PREFIX": Option("A prefix for all keys in Redis, so that several installations can share it."),
    "SECRET_KEY": Option(
        "Signs logins and encrypts stored secrets; several machines must share one. See [Another "
        "SECRET_KEY](deployment.md#another-secret_key).",
        "generated once, in `PARLEY_DATA`",
    ),
    "SECRET_KEY_FALLBACKS": Option("Earlier keys, separated by commas. What they signed and encrypted stays valid."),
    "REQUIRE_MFA": Option("Which users must have two-step verification: `none`, `staff` or `all`."),
    "SECURITY_LOG_DAYS": Option("How many days the security log keeps events; `0`: forever."),
    "PARLEY_CONFIG": Option("The [configuration file](models.md) with providers, models and agents."),
    "TITLES": Option(
        "How a session gets its title after the first turn: `model` has the model write it, `words` takes the "
        "first words."
    ),
    "TOOLS_FOLDER": Option("A folder of Python files with [tools of your own](tools.md#tools-of-your-own)."),
    "WORKSPACES": Option(
        "The folder for the files of [commands](sandbox.md); each session has its own subfolder. Several "
        "machines must share it.",
        "`workspaces` in `PARLEY_DATA`",
    ),
    "SANDBOX_NETWORK": Option(
        "`1` lets [commands](sandbox.md) of agents use the network: the internet and the services of this machine."
    ),
    "MCP_INTERNAL_HOSTS": Option(
        "Hosts with an internal address or without HTTPS that [MCP servers of workspaces](mcp.md#in-the-page) "
        "may use, separated by commas, such as `tickets.lan, *.example.lan`."
    ),
    "WEBHOOK_INTERNAL_HOSTS": Option(
        "Hosts with an internal address or without HTTPS that [webhooks](webhooks.md) may use, separated by commas."
    ),
    "RUNNER": Option(
        "`embedded`: this server also runs the agents. `none`: `manage.py runagents` runs them, on the same database."
    ),
    "SEND_WITHOUT_APPROVAL": Option(
        "`1`: tools may send data out without approval even if the conversation has [text from "
        "elsewhere](tools.md#text-from-elsewhere)."
    ),
    "CAPACITY": Option(
        "How many sessions a process runs at once. More sessions wait for a free place or another process; 250 "
        "for each processor core is a good value for a team."
    ),
    "CHECK_CONTEXT_CACHE": Option(
        "`1`: compare the messages that a process keeps in memory with the stored ones before each request. A "
        "difference ends the turn with an error. Only for debugging Parley: the check takes the time that the "
        "cache saves."
    ),
    "GRACE_SECONDS": Option(
        "How long a stopping process waits for running turns to end. Other processes continue the rest.",
        "`300` with `REDIS_URL`, else `0`",
    ),
    "ANSWER_DAYS": Option(
        "How many days an agent waits for an [answer](tools.md#questions) before it continues without one; `0`: "
        "forever."
    ),
    "RECOVERY": Option(
        "What happens to a turn whose process died: `resume` continues it, `close` marks it as interrupted."
    ),
    "STATEMENT_SECONDS": Option(
        "How long PostgreSQL may work on one statement of a request before the request is answered with 503; "
        "`0`: no limit."
    ),
    "LEASE_SECONDS": Option("How long a worker keeps its sessions after it last renewed its lease."),
    "MAX_MESSAGE_CHARS": Option(
        "The longest message that a user may send, in characters. Markdown after the first 100,000 is shown as source."
    ),
    "MAX_ATTACHMENT_MB": Option("The largest file that a user may attach to a message, in MB."),
    "MAX_IMPORT_MB": Option("The largest conversation file that a user may import, unpacked, in MB."),
    "PURGE_AFTER_DAYS": Option(
        "After how many days deleted sessions and removed messages are deleted permanently; `0` or empty: never."
    ),
    "RETENTION_DAYS": Option(
        "[`manage.py prune`](deployment.md#retention) deletes sessions that no one has used for this many days; "
        "`0`: none."
    ),
    "SOCKETS_PER_USER": Option("How many sockets a user may have open in each process; `0`: no limit."),
    "STREAMS_PER_USER": Option(
        "How many event streams and API requests with `wait` a user may have open in each process; `0`: no limit."
    ),
    "LIMITS": Option(
        "Changes to the [rate limits](deployment.md#rate-limits), such as `sends=60/minute, forks=0`; `0`: no limit."
    ),
    "QUOTAS": Option(
        "Changes to the [quotas](deployment.md#quotas) of each user, such as `tokens_per_day=5000000, "
        "running_turns=10`; `0`: no limit."
    ),
    "MIN_FREE_DISK_MB": Option(
        "With less free disk space than this, Parley refuses uploads, imports, forks and long messages; `0`: never."
    ),
    "CONNECTIONS_PER_ADDRESS": Option(
        "How many connections a client address may have; `0`: no limit. Has no effect with `HTTPS=1`: limit "
        "connections in the proxy."
    ),
    "MONITORING_PORT": Option(
        "A separate port for [`/metrics`, `/healthz` and `/readyz`](monitoring.md) of this process; `0`: none. "
        "Processes on one machine need different ports."
    ),
    "MONITORING_HOST": Option(
        "The address that `MONITORING_PORT` listens on. Only your monitoring should be able to reach it.",
        "`HOST`",
    ),
    "OTEL_EXPORTER_OTLP_ENDPOINT": Option(
        "The address of an OpenTelemetry collector that receives [traces](monitoring.md#traces), such as "
        "`http://collector:4318`."
    ),
    "VAPID_PRIVATE_KEY": Option(
        "Signs [push notifications](deployment.md#notifications): 32 random bytes in Base64. Several machines "
        "must share it; with `REDIS_URL` and no key, there are no push notifications. After a change, each "
        "browser renews its subscription when it next opens a page.",
        "generated once, in `PARLEY_DATA`; none with `REDIS_URL`",
    ),
    "VAPID_SUBJECT": Option(
        "Where operators of push services can reach you: `mailto:admin@example.org`, or an address with `https:`. "
        "Without it, Safari and iPhones get no notifications.",
        "`PUBLIC_URL` if it begins with `https://`, otherwise with `HTTPS=1` the first name in `ALLOWED_HOSTS`",
    ),
    "LOG_LEVEL": Option("The least severe messages to log: `DEBUG`, `INFO`, `WARNING` or `ERROR`."),
    "HANG_SECONDS": Option(
        "After how long a process that hangs prints its stacks and ends itself, so that a container is restarted; `0`: "
        "never. The [image](deployment.md#with-containers) sets `60`. systemd needs no such setting."
    ),
    "LOG_FORMAT": Option("The format of log lines: `text` or `json`; `auto`: text on a terminal, JSON otherwise."),
    "DEBUG": Option("`1` shows errors with their source code in the browser. For development only."),
}
# Settings that only the agents and the Makefile read, not config/settings.py.
OTHERS = {
    "ANTHROPIC_API_KEY": Option("The API key of Anthropic, if the configuration file does not name another variable."),
    "ANTHROPIC_BASE_URL": Option("The address of Anthropic's API, if it is not the usual one."),
    "OPENAI_API_KEY": Option("The API key of OpenAI or of a compatible server."),
    "OPENAI_BASE_URL": Option("The address of a compatible server."),
    "PYTHON": Option(
        "The interpreter with which `make` creates the environment.",
        "the first that is new enough",
    ),
}
