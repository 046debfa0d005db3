"""Long work in slices, between which a server serves other requests."""
