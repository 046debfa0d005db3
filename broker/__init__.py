"""The broker process: one handler per request code over a store in RocketMQ's layout."""
