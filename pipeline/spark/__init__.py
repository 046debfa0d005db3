"""Spark itself: sessions, its Java, its failures and its progress."""
