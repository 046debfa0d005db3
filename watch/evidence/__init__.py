"""What a watcher sees of a group: samples of its queues and consumers."""
