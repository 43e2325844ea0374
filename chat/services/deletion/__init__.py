"""Delete sessions and users for good, with everything that refers to them."""
