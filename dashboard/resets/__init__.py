"""Watched resets of the dashboard: carried out, recorded, kept as a history, and drawn."""
