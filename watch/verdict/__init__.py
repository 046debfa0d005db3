"""The verdict: states, transitions, reasons and races of a watched queue."""
