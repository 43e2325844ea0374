"""Commands in a sandbox: bubblewrap gives them a private folder, a read-only system, no network and limits.

`command` builds the argument list, `process` runs it, `usage` measures disk and memory, `probe` checks whether this
machine can run sandboxes, and `folder` makes and removes workspaces. docs/sandbox.md describes the guarantees.
"""
