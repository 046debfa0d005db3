"""Producers: ordinary and transactional."""
