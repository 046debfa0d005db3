"""The size of the repository at two commits, side by side; ``scripts/compare_size`` calls it."""
