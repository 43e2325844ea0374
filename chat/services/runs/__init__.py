"""Begin, record, stop and retry turns."""
