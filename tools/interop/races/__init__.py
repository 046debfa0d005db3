"""The races of the laboratory with the official Java client, against RocketMQ's and RewindMQ's broker."""
