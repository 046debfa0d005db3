"""The tables of topics and subscription groups, in files under ``config/``."""
