"""Orderly POP: which messages of a queue block the ones behind them."""
