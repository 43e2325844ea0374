"""Where the addresses lead."""

from django.contrib import admin
from django.urls import include, path

from chat.api.root import api
from chat.views.accounts import admin_sign_in

admin.site.login = admin_sign_in  # type: ignore[method-assign]  # as allauth's documentation does it

urlpatterns = [
    path("admin/", admin.site.urls),
    path("api/", api.urls),
    path("", include("chat.urls")),
]
