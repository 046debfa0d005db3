"""Decodes blocks of records into Arrow columns; the layout is that of ``protocol.message.record``."""
