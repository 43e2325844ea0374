"""Commands in a sandbox: bubblewrap gives them a private folder, a read-only system, no network and limits.

`command` builds the argument list, `process` runs it, `usage` measures what it takes, `probe` finds out whether this
machine can do so, `folder` makes and removes workspaces. docs/sandbox.md lists what is promised.
"""
