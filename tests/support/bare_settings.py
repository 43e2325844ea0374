"""Provide minimal Django settings for extracting messages: Parley's own settings would open its data folder."""

USE_I18N = True
LOCALE_PATHS: list[str] = ["locale"]
