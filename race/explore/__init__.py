"""Search the interleavings of small models that run the real code."""
