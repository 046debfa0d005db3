"""Benchmarks: ``./scripts/bench`` runs them and prints one table."""
