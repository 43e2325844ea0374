"""Webhooks of workspaces: manage them, record what happens, and keep what came of their deliveries."""
