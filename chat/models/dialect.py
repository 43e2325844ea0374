"""Request parameters that model servers have rejected."""

from __future__ import annotations

from django.db import models


class LearnedDialect(models.Model):
    """A form of requests to a model of an endpoint that was learned when its server rejected a parameter.

    `endpoint` is a digest of the provider form and the base URL. `learned` is the form that
    `agents.providers.learned` reads and writes. The row expires a day after `learned_at`.
    """

    endpoint = models.CharField(max_length=64)
    model = models.CharField(max_length=255)
    learned = models.JSONField()
    learned_at = models.DateTimeField()

    class Meta:
        constraints = (models.UniqueConstraint(fields=["endpoint", "model"], name="dialect_of_model"),)

    def __str__(self) -> str:
        return self.model
