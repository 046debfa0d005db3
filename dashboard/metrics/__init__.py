"""``/metrics``: what the brokers are asked for it, and which answer feeds which metric."""
