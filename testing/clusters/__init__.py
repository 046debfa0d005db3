"""Clusters that tests run against: own ones, shared by tests with equal options, or a running one."""
