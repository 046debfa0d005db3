"""Texts and records of POP consumption: handles, offset infos, names, checkpoints (RocketMQ 5.5.1)."""
