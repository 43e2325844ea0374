"""Style sheets, scripts and other static files: bundles, names and delivery."""
