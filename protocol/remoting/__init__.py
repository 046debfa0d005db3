"""The asyncio endpoints over the pure protocol, and the seams to time, network, threads and chance."""
