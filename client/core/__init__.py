"""Shared by all clients: lifecycle, instance, connections, routes, profiles, requests from brokers."""
