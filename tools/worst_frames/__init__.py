"""Measures how long the worst legal frame of each request holds a server's event loop."""
