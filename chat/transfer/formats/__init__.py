"""The export formats of other products, each read into the one document form."""
