"""What a broker does on a schedule: flush, registration, retention, statistics."""
