"""Write the conversations of a file as sessions."""
