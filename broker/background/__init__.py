"""The broker's periodic work: flush, registration, retention, statistics."""
