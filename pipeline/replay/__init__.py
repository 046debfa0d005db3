"""What a reset would do to a group, found out before anyone resets."""
