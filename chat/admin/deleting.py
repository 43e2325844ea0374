"""The action that deletes the selected rows of a list, for all lists of the admin."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.actions import delete_selected as delete_with_confirmation
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseBase
from django.utils.translation import gettext as _

# The confirmation page lists each row, and its form has a field for each. Django refuses forms with 1,000 fields.
MAX_ROWS = 100


@admin.action(permissions=["delete"], description=delete_with_confirmation.short_description)  # type: ignore[attr-defined]  # its decorator sets it
def delete_selected(
    model_admin: admin.ModelAdmin[Any], request: HttpRequest, chosen: QuerySet[Any]
) -> HttpResponseBase | None:
    """Delete rows after a confirmation. Refuse a selection that is too large, or whose rows have left the list."""
    count = chosen.count()
    if 0 < count <= MAX_ROWS:
        return delete_with_confirmation(model_admin, request, chosen)
    if count:
        messages.error(request, _("Choose at most %(count)d at a time.") % {"count": MAX_ROWS})
    else:
        messages.warning(request, _("The selected rows are no longer in this list."))
    return None


admin.site.add_action(delete_selected)
