"""The ways 222 resets a group: one module per mode (``docs/reset.md``)."""
