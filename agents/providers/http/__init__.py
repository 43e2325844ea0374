"""HTTP calls to model vendors: clients, server-sent events, decoding, timeouts and errors, shared by all vendors."""
