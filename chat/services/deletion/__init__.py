"""Delete sessions and users permanently, with everything that refers to them."""
