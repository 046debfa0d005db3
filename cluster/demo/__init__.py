"""The demonstration: send, consume, reset and consume again, with every figure verified."""
