"""Engines that run the jobs' tasks: Spark, or this process without Java."""
