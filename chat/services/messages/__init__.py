"""Send, edit, remove, order and exclude messages, and their attachments."""
