"""POP consumption (RocketMQ 5): messages are lent for a time, and revived unless they are acknowledged."""
