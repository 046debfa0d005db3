"""Tests of the views of timer messages and checkpoints."""
