"""Waits for conditions: they are evaluated after each event that the kit sees, and at intervals."""
