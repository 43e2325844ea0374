"""The URLs of the sockets."""

from typing import Any

from channels.security.websocket import WebsocketDenier
from django.urls import path, re_path

from chat.consumers import EventsConsumer, NotificationConsumer, PageConsumer

# Any: Channels routes ASGI applications with Django's paths, which are typed for views.
events: Any = EventsConsumer.as_asgi()
page: Any = PageConsumer.as_asgi()
me: Any = NotificationConsumer.as_asgi()
none: Any = WebsocketDenier.as_asgi()

websocket_urlpatterns: list[Any] = [
    path("ws/sessions/<str:session_id>/", events),
    path("ws/sessions/<str:session_id>/page", page),
    path("ws/me", me),
    # Without this, the router would raise an error for any other address.
    re_path(r"", none),
]
