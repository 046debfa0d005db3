"""Outputs of jobs, and the identity of the log that an output was made from."""
