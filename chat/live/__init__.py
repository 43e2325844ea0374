"""The live stream: who sees what, and when."""
