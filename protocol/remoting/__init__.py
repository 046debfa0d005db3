"""The asyncio endpoints of the protocol, and the interfaces to time, network, threads and randomness."""
