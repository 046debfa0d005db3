"""The common parts of every server process: options, event loop, signals, ready line, point log."""
