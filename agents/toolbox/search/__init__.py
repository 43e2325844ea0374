"""Search services: one small interface, and what differs between them."""
