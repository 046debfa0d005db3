"""Searching the interleavings of small models of the real code."""
