"""What every server process shares: options, event loop, signals, ready line, point log."""
