"""Tests of timer messages."""
