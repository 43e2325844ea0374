"""Hooks of django-allauth: adapters and sign-in events."""
