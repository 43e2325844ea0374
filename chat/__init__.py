"""The chat: sessions and messages as rows, the runs that produce them, the live stream and the pages that show them."""
