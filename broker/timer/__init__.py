"""Timer messages of RocketMQ 5: delivery at any time, and recall (docs/spec/timers.md)."""
