"""Minimal Django settings for the extraction of messages. Parley's own settings would open its data folder."""

USE_I18N = True
LOCALE_PATHS: list[str] = ["locale"]
