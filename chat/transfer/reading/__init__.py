"""Read the conversations in untrusted files, in the server or in a child process with limits."""
