"""Faults between the test's clients and the servers: rules for single requests, cut links and slow links."""
