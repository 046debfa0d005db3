"""A proxy between any client and any cluster, that records frames and holds named ones."""
