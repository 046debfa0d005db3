"""Property tests run the same examples every time, and take what time they need."""

from hypothesis import settings

settings.register_profile("rewindmq", derandomize=True, deadline=None, database=None, max_examples=60)
settings.load_profile("rewindmq")
