"""The live stream: it sends the changes of a session to all of its viewers."""
