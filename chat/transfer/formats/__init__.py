"""The export formats of other products. Each is read into the same form of a document."""
