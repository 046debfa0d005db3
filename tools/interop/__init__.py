"""Unmodified clients with RewindMQ and with RocketMQ: servers, drivers, scenarios, results."""
