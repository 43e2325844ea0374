"""Everything that proves that Parley does what it promises."""
