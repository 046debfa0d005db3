"""The watched reset: previews a reset, and shows for each queue whether it took effect."""
