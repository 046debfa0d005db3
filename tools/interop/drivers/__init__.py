"""The drivers: one small program for each client's ecosystem; README.md has the lines they speak."""
