"""The demonstration: send, consume, rewind and consume again, with every figure verified."""
