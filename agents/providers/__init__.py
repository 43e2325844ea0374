"""The models behind one protocol: one adapter per vendor, each two pure mappings and one SDK call."""
