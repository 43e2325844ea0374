"""Webhooks of workspaces: manage them, record events for them, and store the results of deliveries."""
