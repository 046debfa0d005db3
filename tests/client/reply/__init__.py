"""Tests of client.reply, and of requests and replies as a whole."""
