"""Configuration files and the table of consumer offsets."""
