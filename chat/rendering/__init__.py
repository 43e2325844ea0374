"""How messages become HTML: one renderer each for text, tool cards, terminals and figures; page and stream alike."""
