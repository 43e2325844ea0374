"""The pages' addresses."""

from django.contrib.auth.views import LogoutView
from django.urls import path

from chat.views import accounts, home, session, sharing

urlpatterns = [
    path("", home.home, name="home"),
    path("rail", home.rail, name="rail"),
    path("accounts/sign-in/", accounts.sign_in, name="sign-in"),
    path("accounts/sign-out", LogoutView.as_view(), name="sign-out"),
    path("accounts/link/<str:token>", accounts.sign_in_link, name="sign-in-link"),
    path("join/<str:token>", accounts.join, name="join"),
    path("sessions/new", home.new_session, name="new-session"),
    path("sessions/<str:session_id>/", session.session, name="session"),
    path("sessions/<str:session_id>/messages", session.older_messages, name="session-messages"),
    path("sessions/<str:session_id>/share", sharing.dialog, name="session-share"),
    path("sessions/<str:session_id>/share/member", sharing.share, name="session-share-member"),
    path("sessions/<str:session_id>/share/remove", sharing.unshare, name="session-share-remove"),
    path("sessions/<str:session_id>/share/invite", sharing.invite, name="session-share-invite"),
    path("sessions/<str:session_id>/share/revoke", sharing.revoke_invitations, name="session-share-revoke"),
]
