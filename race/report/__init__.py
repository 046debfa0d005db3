"""A run for people: one HTML file, or text in a terminal."""
