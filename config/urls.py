"""The URLs of the site."""

from django.contrib import admin
from django.urls import include, path

from chat.api import reference
from chat.api.api import api
from chat.views.accounts import admin_password, admin_sign_in

handler500 = "chat.asgi.unavailable.server_error"
# The admin's own pages for signing in and for passwords have no rate limits and no second step.
admin.site.login = admin_sign_in  # type: ignore[method-assign]  # as in allauth's documentation
admin.site.password_change = admin_password  # type: ignore[assignment, method-assign]  # likewise

urlpatterns = [
    path("admin/", admin.site.urls),
    path("api/docs", reference.show, name="api-reference"),
    path("api/", api.urls),
    path("", include("chat.urls")),
]
