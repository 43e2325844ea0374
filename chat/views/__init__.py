"""The pages: each view asks the access gate, reads through services and renders; none writes rows itself."""
