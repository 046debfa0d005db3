"""Filters on message properties: SQL92 as RocketMQ understands it (``org.apache.rocketmq.filter``)."""
