"""The drivers, one small program for each client library; README.md describes their lines."""
