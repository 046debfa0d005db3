"""The replay plan: what a reset would redeliver to a group or skip."""
