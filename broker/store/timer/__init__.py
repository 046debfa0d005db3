"""Files of the open timer messages, in RocketMQ 5's format (docs/spec/timers.md)."""
