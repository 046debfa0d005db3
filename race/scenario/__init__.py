"""The catalogue of races (``behaviour.md`` E.3 to E.16): one module each, listed in ``catalogue``."""
