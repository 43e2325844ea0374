"""All settings of Parley. They come from the environment and have useful defaults. docs/configuration.md lists them."""

from __future__ import annotations

import os
import sys
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

from config import postgres
from config.addresses import contact_address
from config.data_folder import may_make_keys, secret_key, vapid_key
from config.environment import HIGHEST_PORT, SQLITE, Environment

# The library `websockets` reads this variable when it is imported. By default, it refuses handshakes with a header line
# of more than 8 KB, such as the cookies of single sign-on. uvicorn has already limited the size of the whole head.
os.environ.setdefault("WEBSOCKETS_MAX_LINE_LENGTH", "65536")

BASE_DIR = Path(__file__).resolve().parent.parent
env = Environment()

# The folder for all data that Parley writes: the SQLite database, files and keys.
DATA_DIR = Path(env.str("PARLEY_DATA", default=str(BASE_DIR / "var")))

# DATABASE_URL: postgres://user:password@host/name, or another SQLite file than the one in DATA_DIR.
DATABASES = {"default": env.database("DATABASE_URL", sqlite=DATA_DIR / "parley.sqlite3")}
# RUNNER: "embedded" runs the agents inside the server process; "none" leaves them to other processes.
RUNNER = env.choice("RUNNER", "embedded", "none")
MAY_MAKE_KEYS = may_make_keys(DATABASES["default"], "".join(sys.argv[1:2]), RUNNER)

DEBUG = env.flag("DEBUG")
SECRET_KEY = env.str("SECRET_KEY", default="") or secret_key(DATA_DIR, may_make=MAY_MAKE_KEYS)
# SECRET_KEY_FALLBACKS: earlier keys. Data that was signed or encrypted with them stays valid.
SECRET_KEY_FALLBACKS = [key for each in env.list("SECRET_KEY_FALLBACKS", default=[]) if (key := each.strip())]
HOST = env.str("HOST", default="127.0.0.1")
PORT = env.whole("PORT", default=8000, at_most=HIGHEST_PORT)
# WEB_SERVER: the server that `manage.py serve` runs. Both have the same limits.
WEB_SERVER = env.choice("WEB_SERVER", "uvicorn", "daphne")
# PUBLIC_URL: the address at which users reach Parley, for links, if it is not http://HOST:PORT (behind a proxy).
PUBLIC_URL = env.origin("PUBLIC_URL", default="")
# In requests, IPv6 addresses have brackets.
OWN_HOST, PUBLIC_HOST = (f"[{name}]" if ":" in name else name for name in (HOST, urlsplit(PUBLIC_URL).hostname or ""))
ALLOWED_HOSTS = env.host_names("ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]", OWN_HOST])
CSRF_TRUSTED_ORIGINS = env.origins("CSRF_TRUSTED_ORIGINS", default=[])
if PUBLIC_URL:  # printed links lead there, whatever other names are allowed
    ALLOWED_HOSTS = [*dict.fromkeys([*ALLOWED_HOSTS, PUBLIC_HOST])]
    CSRF_TRUSTED_ORIGINS = [*dict.fromkeys([*CSRF_TRUSTED_ORIGINS, PUBLIC_URL])]

INSTALLED_APPS = [
    # Before chat, which removes their pages from the admin because those show secrets.
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "chat.apps.ChatConfig",
    "channels",
    "chat.apps.ParleyAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "chat.assets.static_files.Delivery",
    "chat.api.middleware.methods",
    # Secrets that BREACH could guess from sizes (Django's CSRF tokens) are masked differently in each response, and
    # Django adds random bytes.
    "chat.middleware.Compression",
    "chat.middleware.content_security_policy",
    "chat.middleware.not_cached",
    "chat.api.middleware.problems",
    "chat.middleware.origin",
    "chat.middleware.LoginSessions",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "chat.middleware.language",
    "chat.middleware.second_factor",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "chat.middleware.refusals",
]

ROOT_URLCONF = "config.urls"
ASGI_APPLICATION = "config.asgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "OPTIONS": {
            "loaders": [
                (
                    "django.template.loaders.cached.Loader",
                    [
                        "config.templates.FileSystemLoader",
                        "django.template.loaders.app_directories.Loader",
                    ],
                )
            ]
            if not DEBUG
            else [
                "config.templates.FileSystemLoader",
                "django.template.loaders.app_directories.Loader",
            ],
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    }
]

# STATEMENT_SECONDS: how long PostgreSQL may work on one statement of a request before the answer is "try again"; 0: no
# limit.
STATEMENT_SECONDS = env.number("STATEMENT_SECONDS", default=5.0)
if DATABASES["default"]["ENGINE"] == SQLITE:
    # Django's backend, except that writers in this process take turns and wait for the disk together.
    DATABASES["default"]["ENGINE"] = "chat.overrides.sqlite"
    DATABASES["default"].setdefault("OPTIONS", {}).update(
        {
            # Writers wait for the lock at BEGIN instead of failing half-way with "database is locked".
            "transaction_mode": "IMMEDIATE",
            "timeout": 5,
            # FULL: committed data survives a power failure.
            "init_command": (
                "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA cache_size=-32000;"
                "PRAGMA journal_size_limit=67108864; PRAGMA mmap_size=134217728; PRAGMA busy_timeout=5000;"
                # Deleted data is overwritten. Otherwise it would stay in the file until its place is used again.
                "PRAGMA secure_delete=ON;"
            ),
        }
    )
    # Several threads write in tests, too, so the test database is also a file.
    DATABASES["default"]["TEST"] = {"NAME": str(DATA_DIR / "test.sqlite3")}
    # Each thread keeps its SQLite connection, because opening one costs more than most queries.
    DATABASES["default"]["CONN_MAX_AGE"] = None
else:
    DATABASES["default"] |= postgres.database(DATABASES["default"], statement_seconds=STATEMENT_SECONDS)
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# BACKUPS: how many copies of a SQLite database are kept. A start makes one before a migration; 0: none.
BACKUPS = env.whole("BACKUPS", default=3)

# REDIS_URL: required if there are several server processes. Without it, messages are sent in memory.
REDIS_URL = env.redis("REDIS_URL")
REDIS_PREFIX = env.str("REDIS_PREFIX", default="parley")
CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "chat.overrides.redis_layer.RedisLayer",
        "CONFIG": {"hosts": [REDIS_URL], "prefix": REDIS_PREFIX},
    }
    if REDIS_URL
    else {"BACKEND": "chat.bus.memory_layer.MemoryLayer"}
}

AUTH_USER_MODEL = "chat.User"
# Django's default hasher with a limit of concurrent hashes. The others check passwords of other installations.
PASSWORD_HASHERS = [
    "chat.security.password_hashing.BoundedHasher",
    "django.contrib.auth.hashers.PBKDF2SHA1PasswordHasher",
    "django.contrib.auth.hashers.ScryptPasswordHasher",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "sign-in"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "sign-in"

# REQUIRE_MFA: the users who must have a second factor: "none", "staff" or "all". Without it, they can only set it up.
REQUIRE_MFA = env.choice("REQUIRE_MFA", "none", "staff", "all")
# Signing in uses allauth's stages. Its pages, forms, mails and limits are replaced by Parley's own.
ACCOUNT_ADAPTER = "chat.sign_in.adapters.AccountAdapter"
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_RATE_LIMITS = MFA_RATE_LIMITS = False
MFA_ADAPTER = "chat.sign_in.adapters.MFAAdapter"
MFA_ALLOW_UNVERIFIED_EMAIL = True
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_PASSKEY_LOGIN_ENABLED = True
# A passkey always requires a fingerprint, face or PIN, so it can replace both steps of signing in.
MFA_WEBAUTHN_USER_VERIFICATION = "required"
# A code is also valid 30 seconds before and after its own time, because clocks differ and typing takes time.
MFA_TOTP_TOLERANCE = 1

LANGUAGE_CODE = "en"
# The names are in the languages themselves, so that users find theirs even if they cannot read the page's language.
LANGUAGES = [("en", "English"), ("zh-hans", "简体中文"), ("zh-hant", "繁體中文")]
LOCALE_PATHS = [BASE_DIR / "locale"]
USE_I18N = True
TIME_ZONE = "UTC"
USE_TZ = True

# Files that users upload. They have no public address; views check the access for each request.
MEDIA_ROOT = DATA_DIR / "files"
# S3_BUCKET: store the files in a bucket instead, which several machines can reach. S3_ENDPOINT is the address of a
# server other than Amazon's, and S3_PREFIX the beginning of all names. Without keys, those are used that Amazon's tools
# find, such as the machine's role.
S3_BUCKET = env.str("S3_BUCKET", default="")
S3_ENDPOINT = env.str("S3_ENDPOINT", default="").rstrip("/")
S3_REGION = env.str("S3_REGION", default="")
S3_ACCESS_KEY_ID = env.str("S3_ACCESS_KEY_ID", default="")
S3_SECRET_ACCESS_KEY = env.str("S3_SECRET_ACCESS_KEY", default="")
S3_PREFIX = env.str("S3_PREFIX", default="").strip("/")
FILE_UPLOAD_PERMISSIONS = 0o600
FILE_UPLOAD_DIRECTORY_PERMISSIONS = 0o700

STATIC_URL = "static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
# The server prepares the files here when it starts (chat/assets/static_files.py), so no collectstatic is needed. With
# DEBUG=1, the sources are served.
PREPARED_STATIC = DATA_DIR / "static"
STORAGES = {
    "default": {
        "BACKEND": "chat.s3.S3Storage",
        "OPTIONS": {
            "bucket": S3_BUCKET,
            "prefix": S3_PREFIX,
            "endpoint": S3_ENDPOINT,
            "region": S3_REGION,
            "key_id": S3_ACCESS_KEY_ID,
            "key": S3_SECRET_ACCESS_KEY,
        },
    }
    if S3_BUCKET
    else {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "chat.assets.static_files.Storage"},
}
WHITENOISE_USE_FINDERS = WHITENOISE_AUTOREFRESH = DEBUG
# No other site needs them.
WHITENOISE_ALLOW_ALL_ORIGINS = False

# HTTPS=1 behind a TLS proxy: cookies are sent only over HTTPS, and the proxy's X-Forwarded-Proto is trusted.
HTTPS = env.flag("HTTPS")
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HTTPS else None
# PROXIES: how many addresses the proxies add to X-Forwarded-For. The first of them is the client's.
PROXIES = env.whole("PROXIES", default=1, at_least=1)
SESSION_ENGINE = "chat.security.session_store"
# Browsers accept a cookie with this prefix only from this host over HTTPS, so no other host of the domain can set it.
COOKIE_PREFIX = "__Host-" if HTTPS else ""
SESSION_COOKIE_NAME = f"{COOKIE_PREFIX}parley_session"
CSRF_COOKIE_NAME = f"{COOKIE_PREFIX}parley_csrf"
# Pages are redirected to HTTPS. The API is not, because a client that has sent its token unencrypted gets an error
# (chat/asgi/encrypted_tokens.py).
SECURE_SSL_REDIRECT = HTTPS
SECURE_REDIRECT_EXEMPT = [r"^api/"]
# HSTS_SECONDS: how long browsers use only HTTPS after a visit; 0 sends no such header.
SECURE_HSTS_SECONDS = env.whole("HSTS_SECONDS", default=31_536_000) if HTTPS else 0
# These checks are about subdomains and about browsers' preload lists, which operators decide.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]
CSRF_FAILURE_VIEW = "chat.views.requests.too_old"
SESSION_COOKIE_AGE = int(timedelta(days=30).total_seconds())
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"

# The longest text of a message, in characters. Longer ones are refused with a clear error (MSG-12).
MAX_MESSAGE_CHARS = env.whole("MAX_MESSAGE_CHARS", default=2_000_000, at_least=1)
# The largest body without files: the longest message or system prompt in JSON or in a form, which need up to twelve
# bytes for a character (\ud83d\ude00, %F0%9F%98%80). chat/asgi/bodies.py enforces it before Django reads a body.
DATA_UPLOAD_MAX_MEMORY_SIZE = 12 * max(MAX_MESSAGE_CHARS, 200_000) + 1024 * 1024
# The largest file that a user may attach to a message.
MAX_ATTACHMENT_MB = env.whole("MAX_ATTACHMENT_MB", default=20, at_least=1)
# The largest file of conversations that a user may import, unpacked. Reading it needs about five times its size in
# memory.
MAX_IMPORT_MB = env.whole("MAX_IMPORT_MB", default=100, at_least=1)

# PURGE_AFTER_DAYS: sessions and messages that users deleted are erased after this many days; 0 or empty: never.
PURGE_AFTER_DAYS = env.days("PURGE_AFTER_DAYS", default=30)
# RETENTION_DAYS: `manage.py prune` deletes sessions that no one has used for this many days; 0 or empty: none.
RETENTION_DAYS = env.days("RETENTION_DAYS", default=0)
# SOCKETS_PER_USER, STREAMS_PER_USER: how many sockets, and how many event streams and API requests that wait for a
# turn, a user may have open in each process; 0: any number.
SOCKETS_PER_USER = env.whole("SOCKETS_PER_USER", default=30)
STREAMS_PER_USER = env.whole("STREAMS_PER_USER", default=20)
# CONNECTIONS_PER_ADDRESS: how many connections one address may have; 0: any number. With HTTPS=1, all connections come
# from the proxy, which has to limit them.
CONNECTIONS_PER_ADDRESS = env.whole("CONNECTIONS_PER_ADDRESS", default=500)

# LIMITS: replaces default rate limits of chat/limits/rates.py, such as "sends=60/minute, forks=0"; 0: no limit.
LIMITS = env.str("LIMITS", default="")
# QUOTAS: replaces default quotas of chat/limits/quotas.py, such as "tokens_per_day=5000000"; 0: no limit.
QUOTAS = env.str("QUOTAS", default="")
# MIN_FREE_DISK_MB: with less free disk than this, uploads, imports, forks and long messages are refused; 0: never.
MIN_FREE_DISK_MB = env.whole("MIN_FREE_DISK_MB", default=200)

# PARLEY_CONFIG: a TOML or JSON file with providers, models and agents (docs/models.md); empty: from the environment.
PARLEY_CONFIG = env.str("PARLEY_CONFIG", default="")
# TITLES: after its first turn, a session gets a title from its "model", by a short request, or from its first "words".
TITLES = env.choice("TITLES", "model", "words")
# TOOLS_FOLDER: a folder of Python files with your own tools (docs/tools.md). They run with the rights of Parley.
TOOLS_FOLDER = env.str("TOOLS_FOLDER", default="")
# WORKSPACES: the folder with a folder for each session whose agent runs commands. Several machines must share it.
WORKSPACES = env.str("WORKSPACES", default=str(DATA_DIR / "workspaces"))
# SANDBOX_NETWORK=1: commands of agents may use the network, including the services of this machine.
SANDBOX_NETWORK = env.flag("SANDBOX_NETWORK")
# SEND_WITHOUT_APPROVAL=1: a tool may send data out without an approval while there is text from elsewhere.
SEND_WITHOUT_APPROVAL = env.flag("SEND_WITHOUT_APPROVAL")
# MCP_INTERNAL_HOSTS: the hosts with an internal address that MCP servers of workspaces may have.
MCP_INTERNAL_HOSTS = env.hosts("MCP_INTERNAL_HOSTS")
# WEBHOOK_INTERNAL_HOSTS: the hosts with an internal address that webhooks of workspaces may have.
WEBHOOK_INTERNAL_HOSTS = env.hosts("WEBHOOK_INTERNAL_HOSTS")
# CAPACITY: how many sessions one process may run. Further ones wait for a free place or for another process.
CAPACITY = env.whole("CAPACITY", default=2000, at_least=1)
# CHECK_CONTEXT_CACHE: whether the rows that a process keeps for a context are compared with the stored rows each time.
CHECK_CONTEXT_CACHE = env.flag("CHECK_CONTEXT_CACHE")
# GRACE_SECONDS: how long a process that is asked to stop lets its turns continue. Turns that are not done then continue
# in other processes or after the next start.
GRACE_SECONDS = env.number("GRACE_SECONDS", default=0 if not REDIS_URL else 300)
# ANSWER_DAYS: how long an agent waits for an answer of users; 0: for ever.
ANSWER_DAYS = env.days("ANSWER_DAYS", default=30)
# RECOVERY: what happens to a turn whose process died: "resume" it, or "close" it as interrupted.
RECOVERY = env.choice("RECOVERY", "resume", "close")
# LEASE_SECONDS: how long after its last renewal a worker loses its claims.
LEASE_SECONDS = env.number("LEASE_SECONDS", default=10.0)

# SECURITY_LOG_DAYS: how long the security log keeps its rows; 0 keeps them for ever.
SECURITY_LOG_DAYS = env.days("SECURITY_LOG_DAYS", default=365)
# MONITORING_PORT: the separate port on which this process answers /metrics, /healthz and /readyz; 0: none.
MONITORING_PORT = env.whole("MONITORING_PORT", default=0, at_most=HIGHEST_PORT)
MONITORING_HOST = env.str("MONITORING_HOST", default=HOST)

# OTEL_EXPORTER_OTLP_ENDPOINT: the collector that gets traces (chat/runner/tracing.py); empty: none.
OTEL_EXPORTER_OTLP_ENDPOINT = env.str("OTEL_EXPORTER_OTLP_ENDPOINT", default="")

# VAPID_PRIVATE_KEY: signs push messages. Several machines must share one. Without Redis, Parley makes its own.
VAPID_PRIVATE_KEY = env.str("VAPID_PRIVATE_KEY", default="") or (
    "" if REDIS_URL else vapid_key(DATA_DIR, may_make=MAY_MAKE_KEYS)
)
# VAPID_SUBJECT: how operators of push services can reach the operator of Parley: "mailto:…" or "https://…". Apple's
# service refuses messages without it.
VAPID_SUBJECT = env.str("VAPID_SUBJECT", default=contact_address(PUBLIC_URL, ALLOWED_HOSTS if HTTPS else ()))

# LOG_LEVEL: the least level of Parley's log lines on the console. For its libraries, it is WARNING.
LOG_LEVEL = env.choice("LOG_LEVEL", "INFO", "DEBUG", "WARNING", "ERROR")
# HANG_SECONDS: after how long a process whose event loop hangs ends itself (config/service_manager.py); 0: never.
HANG_SECONDS = env.number("HANG_SECONDS", default=0)
# LOG_FORMAT: "text", or "json" for programs; "auto" is text on a terminal, otherwise JSON.
LOG_FORMAT = env.choice("LOG_FORMAT", "auto", "text", "json")
LOGS_ARE_JSON = LOG_FORMAT == "json" or (LOG_FORMAT == "auto" and not sys.stderr.isatty())
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "lines": {"()": "config.logs.JsonLines" if LOGS_ARE_JSON else "config.logs.TextLines"},
        "security lines": {"()": "config.logs.SecurityLines"},
    },
    "filters": {
        "refused_requests": {"()": "config.logs.RefusedRequests", "level": LOG_LEVEL},
        "ended_responses": {"()": "config.logs.EndedResponses", "level": LOG_LEVEL},
        "lost_redis": {"()": "config.logs.LostRedis"},
        "repeats": {"()": "config.logs.RepeatFilter"},
    },
    "handlers": {
        "console": {
            "class": "logging.StreamHandler",
            "formatter": "lines",
            "filters": ["refused_requests", "ended_responses", "lost_redis", "repeats"],
        },
        "security": {"class": "logging.StreamHandler", "formatter": "security lines"},
    },
    "root": {"handlers": ["console"], "level": "WARNING"},
    "loggers": {
        "chat": {"level": LOG_LEVEL},
        "agents": {"level": LOG_LEVEL},
        # Each line is a JSON object, with any LOG_LEVEL and LOG_FORMAT.
        "chat.security": {"level": "INFO", "handlers": ["security"], "propagate": False},
        # Operators do not need warnings about pages that do not exist.
        "django.request": {"level": "ERROR"},
    },
}
