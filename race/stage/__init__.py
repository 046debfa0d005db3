"""The same cast on different stages: simulated, on real sockets in real processes, and behind proxies."""
