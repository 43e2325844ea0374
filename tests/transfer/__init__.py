"""Sessions as files, and back."""
