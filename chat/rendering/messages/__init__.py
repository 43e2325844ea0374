"""Snapshots of messages and sessions as HTML, and the frames that carry the HTML to pages."""
