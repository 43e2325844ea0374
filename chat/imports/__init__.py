"""Files of conversations, Parley's own and others', read into one checked form: nothing in them is trusted."""
