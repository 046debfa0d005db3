"""The rules: each takes in the samples of a queue one by one, and returns what it finds, or nothing."""
