"""Parse JSON and ZIP archives from untrusted files in bounded memory."""
