"""Code that several handlers use."""
