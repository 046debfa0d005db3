"""Pulls: check the request, redirect it after a reset, read, or suspend it until a message arrives."""
