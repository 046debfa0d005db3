"""Records of what holds a server's event loop."""
