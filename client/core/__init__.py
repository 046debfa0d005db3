"""What all clients share: life, instance, connections, routes, profiles, requests from brokers."""
