"""Every setting of Parley: environment first, sensible without any. docs/configuration.md describes them."""

from __future__ import annotations

import sys
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

from config import postgres
from config.data_folder import secret_key, vapid_key
from config.environment import HIGHEST_PORT, SQLITE, Environment

BASE_DIR = Path(__file__).resolve().parent.parent
env = Environment()

# Where Parley keeps what it writes: the SQLite database and its keys.
DATA_DIR = Path(env.str("PARLEY_DATA", default=str(BASE_DIR / "var")))

DEBUG = env.flag("DEBUG")
SECRET_KEY = env.str("SECRET_KEY", default="") or secret_key(DATA_DIR)
# SECRET_KEY_FALLBACKS: earlier keys. What they have signed and encrypted stays valid.
SECRET_KEY_FALLBACKS = env.list("SECRET_KEY_FALLBACKS", default=[])
HOST = env.str("HOST", default="127.0.0.1")
PORT = env.whole("PORT", default=8000, at_most=HIGHEST_PORT)
# WEB_SERVER: which server `manage.py serve` runs; both have the same limits.
WEB_SERVER = env.choice("WEB_SERVER", "uvicorn", "daphne")
# PUBLIC_URL: where people reach Parley when that is not http://HOST:PORT (behind a proxy): used in printed links.
PUBLIC_URL = env.origin("PUBLIC_URL", default="")
PUBLIC_HOSTS = [host] if (host := urlsplit(PUBLIC_URL).hostname) else []
ALLOWED_HOSTS = env.host_names("ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]", HOST, *PUBLIC_HOSTS])
CSRF_TRUSTED_ORIGINS = env.origins("CSRF_TRUSTED_ORIGINS", default=[PUBLIC_URL] if PUBLIC_URL else [])

INSTALLED_APPS = [
    # Ahead of chat, which takes their pages out of the admin: those show secrets.
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
    "chat.middleware.kept_nowhere",
    "chat.api.middleware.problems",
    "chat.middleware.origin",
    "django.contrib.sessions.middleware.SessionMiddleware",
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

# STATEMENT_SECONDS: how long PostgreSQL may work on one statement of a request, before it answers "try again"; 0: for
# as long as it takes.
STATEMENT_SECONDS = env.number("STATEMENT_SECONDS", default=5.0)
# DATABASE_URL: SQLite in DATA_DIR unless told otherwise, or postgres://user:password@host/name.
DATABASES = {"default": env.database("DATABASE_URL", sqlite=DATA_DIR / "parley.sqlite3")}
if DATABASES["default"]["ENGINE"] == SQLITE:
    # Django's own, whose writers in this process take turns and wait for the disk together.
    DATABASES["default"]["ENGINE"] = "chat.overrides.sqlite"
    DATABASES["default"].setdefault("OPTIONS", {}).update(
        {
            # Writers wait for the lock at BEGIN instead of failing half-way with "database is locked".
            "transaction_mode": "IMMEDIATE",
            "timeout": 5,
            # FULL: what was committed survives a power cut too.
            "init_command": (
                "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA cache_size=-32000;"
                "PRAGMA journal_size_limit=67108864; PRAGMA mmap_size=134217728; PRAGMA busy_timeout=5000;"
                # What is deleted is overwritten, and does not stay in the file until its place is used again.
                "PRAGMA secure_delete=ON;"
            ),
        }
    )
    # Several threads write in tests as they do in life, so the test database is a file as well.
    DATABASES["default"]["TEST"] = {"NAME": str(DATA_DIR / "test.sqlite3")}
    # A SQLite connection belongs to its thread for good: opening one costs more than most queries.
    DATABASES["default"]["CONN_MAX_AGE"] = None
else:
    DATABASES["default"] |= postgres.database(DATABASES["default"], statement_seconds=STATEMENT_SECONDS)
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# BACKUPS: how many copies of a SQLite database are kept that a start makes before it updates the database; 0: none.
BACKUPS = env.whole("BACKUPS", default=3)

# REDIS_URL: needed as soon as there is more than one web process; otherwise everything stays in memory.
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
# Django's default with a bound on how many hashes are made at once. The others check passwords from elsewhere.
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

# REQUIRE_MFA: who must have a second factor: "none", "staff", or "all". Until they have set one up, nothing else opens.
REQUIRE_MFA = env.choice("REQUIRE_MFA", "none", "staff", "all")
# Signing in goes in allauth's stages; its pages, forms, mails and limits are replaced by Parley's own.
ACCOUNT_ADAPTER = "chat.sign_in.adapters.AccountAdapter"
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_RATE_LIMITS = MFA_RATE_LIMITS = False
MFA_ADAPTER = "chat.sign_in.adapters.MFAAdapter"
MFA_ALLOW_UNVERIFIED_EMAIL = True
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_PASSKEY_LOGIN_ENABLED = True
# A passkey always asks for a fingerprint, face or PIN: then it can stand for both steps of signing in.
MFA_WEBAUTHN_USER_VERIFICATION = "required"
MFA_TOTP_ISSUER = "Parley"
# A code also counts in the half minute before and after its own: clocks differ, and typing takes a while.
MFA_TOTP_TOLERANCE = 1

LANGUAGE_CODE = "en"
# In their own words: who cannot read the page's language finds theirs. What is pushed into a page follows its language.
LANGUAGES = [("en", "English"), ("zh-hans", "简体中文"), ("zh-hant", "繁體中文")]
LOCALE_PATHS = [BASE_DIR / "locale"]
USE_I18N = True
TIME_ZONE = "UTC"
USE_TZ = True

# Files that people upload. They are never served from an address of their own: views check who asks.
MEDIA_ROOT = DATA_DIR / "files"
# S3_BUCKET: keep them in a bucket instead, which several machines can reach; S3_ENDPOINT names a server other than
# Amazon's, S3_PREFIX a part of the bucket. Without keys, they are what Amazon's tools find: a role of the machine.
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
# Prepared here at the start of a server (chat/assets/static_files.py): nothing to collect by hand, nothing to build.
# With DEBUG=1 the files are served as they are.
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
# No other site has a use for them.
WHITENOISE_ALLOW_ALL_ORIGINS = False

# HTTPS=1 behind a TLS proxy: cookies only over HTTPS, and the proxy's X-Forwarded-Proto is believed.
HTTPS = env.flag("HTTPS")
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HTTPS else None
SESSION_ENGINE = "chat.security.session_store"
# Browsers take a cookie with this prefix from this host alone, over HTTPS: no other host of the domain can set it.
COOKIE_PREFIX = "__Host-" if HTTPS else ""
SESSION_COOKIE_NAME = f"{COOKIE_PREFIX}parley_session"
CSRF_COOKIE_NAME = f"{COOKIE_PREFIX}parley_csrf"
# Pages are redirected to HTTPS. The API is not: a client that has sent its token in the clear should hear of it.
SECURE_SSL_REDIRECT = HTTPS
SECURE_REDIRECT_EXEMPT = [r"^api/"]
# HSTS_SECONDS: for how long browsers that have been here use nothing but HTTPS; 0 does not ask them to.
SECURE_HSTS_SECONDS = env.whole("HSTS_SECONDS", default=31_536_000) if HTTPS else 0
# What other hosts of the domain do, and whether browsers come with this one built in, is not for Parley to decide.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]
CSRF_FAILURE_VIEW = "chat.views.requests.too_old"
SESSION_COOKIE_AGE = int(timedelta(days=30).total_seconds())
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"

# The longest text that one message may have, in characters; longer ones are refused with a clear error (MSG-12).
MAX_MESSAGE_CHARS = env.whole("MAX_MESSAGE_CHARS", default=2_000_000, at_least=1)
# The largest body but for files: the longest message (or system prompt) in JSON or in a form, which take up to twelve
# bytes for a character (\ud83d\ude00, %F0%9F%98%80). chat/asgi/bodies.py holds it before Django reads a body.
DATA_UPLOAD_MAX_MEMORY_SIZE = 12 * max(MAX_MESSAGE_CHARS, 200_000) + 1024 * 1024
# The largest file that one may attach to a message.
MAX_ATTACHMENT_MB = env.whole("MAX_ATTACHMENT_MB", default=20, at_least=1)
# The largest file of conversations that one may import, unpacked. Reading it takes some five times its size in memory.
MAX_IMPORT_MB = env.whole("MAX_IMPORT_MB", default=100, at_least=1)

# PURGE_AFTER_DAYS: sessions and messages that users deleted are gone for good after so many days; 0 or empty: never.
PURGE_AFTER_DAYS = env.days("PURGE_AFTER_DAYS", default=30)
# RETENTION_DAYS: `manage.py prune` deletes sessions that no one has used for so many days; 0 or empty: it deletes none.
RETENTION_DAYS = env.days("RETENTION_DAYS", default=0)
# SOCKETS_PER_USER, STREAMS_PER_USER: how many sockets, and how many event streams and API requests that wait for a
# turn, a user may have open at once in each process; 0: any number.
SOCKETS_PER_USER = env.whole("SOCKETS_PER_USER", default=30)
STREAMS_PER_USER = env.whole("STREAMS_PER_USER", default=20)
# CONNECTIONS_PER_ADDRESS: how many connections one address may have, 0: any number. With HTTPS=1 all of them come from
# the proxy, which has to count them.
CONNECTIONS_PER_ADDRESS = env.whole("CONNECTIONS_PER_ADDRESS", default=500)

# LIMITS: other rate limits than the defaults in chat/limits/rates.py, as "sends=60/minute, forks=0"; 0 means no
# limit.
LIMITS = env.str("LIMITS", default="")
# QUOTAS: other quotas than the defaults in chat/limits/quotas.py, as "tokens_per_day=5000000"; 0: no limit.
QUOTAS = env.str("QUOTAS", default="")
# MIN_FREE_DISK_MB: with less free disk than this, uploads, imports, forks and long messages are refused; 0: never.
MIN_FREE_DISK_MB = env.whole("MIN_FREE_DISK_MB", default=200)

# PARLEY_CONFIG: a TOML or JSON file with providers, models and agents (docs/models.md); empty: from the environment.
PARLEY_CONFIG = env.str("PARLEY_CONFIG", default="")
# TITLES: after its first turn a session is named by its own "model", in one more short request; or it keeps the first
# "words" that were said in it.
TITLES = env.choice("TITLES", "model", "words")
# TOOLS_FOLDER: a folder of Python files with tools of your own (docs/tools.md). Their code runs as Parley does.
TOOLS_FOLDER = env.str("TOOLS_FOLDER", default="")
# WORKSPACES: a folder for each session whose agent runs commands. Several machines need a shared one.
WORKSPACES = env.str("WORKSPACES", default=str(DATA_DIR / "workspaces"))
# SANDBOX_NETWORK=1: commands of agents may use the network, this machine's own services too.
SANDBOX_NETWORK = env.flag("SANDBOX_NETWORK")
# SEND_WITHOUT_APPROVAL=1: text from elsewhere in a conversation is no reason to ask before a tool sends data out.
SEND_WITHOUT_APPROVAL = env.flag("SEND_WITHOUT_APPROVAL")
# MCP_INTERNAL_HOSTS: the hosts with an internal address that MCP servers of workspaces may have.
MCP_INTERNAL_HOSTS = env.hosts("MCP_INTERNAL_HOSTS")
# WEBHOOK_INTERNAL_HOSTS: the hosts with an internal address that webhooks of workspaces may have.
WEBHOOK_INTERNAL_HOSTS = env.hosts("WEBHOOK_INTERNAL_HOSTS")
# RUNNER: "embedded" runs the agents inside the server process; "none" leaves them to other processes.
RUNNER = env.choice("RUNNER", "embedded", "none")
# CAPACITY: how many sessions one process runs at once; further ones wait for a free place, or for another process.
CAPACITY = env.whole("CAPACITY", default=2000, at_least=1)
# CHECK_CONTEXT_CACHE: whether the rows of a context that a process keeps are compared with the stored ones each time.
CHECK_CONTEXT_CACHE = env.flag("CHECK_CONTEXT_CACHE")
# GRACE_SECONDS: how long a process that is asked to stop lets its turns run on. Other processes continue the rest, or
# the next start does.
GRACE_SECONDS = env.number("GRACE_SECONDS", default=0 if not REDIS_URL else 300)
# ANSWER_DAYS: how long an agent waits for an answer of people; 0: for ever.
ANSWER_DAYS = env.days("ANSWER_DAYS", default=30)
# RECOVERY: what happens to a turn whose process died: "resume" it, or "close" it as interrupted.
RECOVERY = env.choice("RECOVERY", "resume", "close")
# A worker's claim on its sessions ends this long after its last sign of life.
LEASE_SECONDS = env.number("LEASE_SECONDS", default=10.0)

# SECURITY_LOG_DAYS: how long the security log keeps its rows; 0 keeps them for ever.
SECURITY_LOG_DAYS = env.days("SECURITY_LOG_DAYS", default=365)
# MONITORING_PORT: where this process answers /metrics, /healthz and /readyz, apart from its pages; 0: nowhere.
MONITORING_PORT = env.whole("MONITORING_PORT", default=0, at_most=HIGHEST_PORT)
MONITORING_HOST = env.str("MONITORING_HOST", default=HOST)

# OTEL_EXPORTER_OTLP_ENDPOINT: where traces go (chat/runner/tracing.py); empty: nowhere.
OTEL_EXPORTER_OTLP_ENDPOINT = env.str("OTEL_EXPORTER_OTLP_ENDPOINT", default="")

# VAPID_PRIVATE_KEY: signs push messages. Processes of several machines must share one; a single one makes its own.
VAPID_PRIVATE_KEY = env.str("VAPID_PRIVATE_KEY", default="") or ("" if REDIS_URL else vapid_key(DATA_DIR))
# VAPID_SUBJECT: where the operators of push services can reach this one's: "mailto:…" or "https://…".
VAPID_SUBJECT = env.str("VAPID_SUBJECT", default=PUBLIC_URL if PUBLIC_URL.startswith("https://") else "")

# LOG_LEVEL: how much Parley tells on the console; its libraries speak from WARNING on.
LOG_LEVEL = env.choice("LOG_LEVEL", "INFO", "DEBUG", "WARNING", "ERROR")
# LOG_FORMAT: "text" for people, "json" for programs; "auto" is text on a terminal and JSON elsewhere.
LOG_FORMAT = env.choice("LOG_FORMAT", "auto", "text", "json")
LOGS_ARE_JSON = LOG_FORMAT == "json" or (LOG_FORMAT == "auto" and not sys.stderr.isatty())
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "lines": {"()": "config.logs.JsonLines" if LOGS_ARE_JSON else "config.logs.TextLines"},
        "bare": {"format": "{message}", "style": "{"},
    },
    "filters": {
        "strangers": {"()": "config.logs.Strangers", "level": LOG_LEVEL},
        "throttle": {"()": "config.logs.Throttle"},
    },
    "handlers": {
        "console": {
            "class": "logging.StreamHandler",
            "formatter": "lines",
            "filters": ["strangers", "throttle"],
        },
        "json lines": {"class": "logging.StreamHandler", "formatter": "bare"},
    },
    "root": {"handlers": ["console"], "level": "WARNING"},
    "loggers": {
        "chat": {"level": LOG_LEVEL},
        "agents": {"level": LOG_LEVEL},
        # Each line is a JSON object, whatever LOG_LEVEL says.
        "chat.security": {"level": "INFO", "handlers": ["json lines"], "propagate": False},
        # A page that does not exist is no news to an operator.
        "django.request": {"level": "ERROR"},
    },
}
