"""System checks: what an operator has set wrong, found at start with its remedy."""
