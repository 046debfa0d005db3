"""The catalogue of races (docs/spec/races.md E.3 to E.16), one module each, listed in ``catalogue``."""
