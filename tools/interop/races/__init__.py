"""The laboratory's races with the official Java client, at RocketMQ's and RewindMQ's broker."""
