"""Accounts, sign-in, API tokens, workspaces, shares and guests."""
