"""The remoting protocol: converts between bytes and typed values.

Everything in this package except ``protocol/remoting`` is pure: no asyncio, socket, clock or file.
"""
