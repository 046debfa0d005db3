"""Fixtures of the test kit's own tests: made by its factories, as a user's are."""

from rewindmq import testing

kit_cluster = testing.cluster()
rmq = testing.rmq("kit_cluster")
wired = testing.rmq("kit_cluster", wire=True)
