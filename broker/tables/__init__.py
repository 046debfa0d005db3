"""The broker's topics and subscription groups, in files under ``config/``."""
