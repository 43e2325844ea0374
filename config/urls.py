"""Where the addresses lead."""

from django.contrib import admin
from django.urls import include, path

from chat.api import reference
from chat.api.root import api
from chat.forms import AdminSignInForm

admin.site.login_form = AdminSignInForm

urlpatterns = [
    path("admin/", admin.site.urls),
    path("api/docs", reference.show, name="api-reference"),
    path("api/", api.urls),
    path("", include("chat.urls")),
]
