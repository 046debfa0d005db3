"""The broker process: request handlers and services over a store in RocketMQ's format."""
