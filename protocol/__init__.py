"""The remoting protocol: bytes in, values out.

Everything in this package except ``protocol/remoting`` is pure: no asyncio, socket, clock or file.
"""
