"""Which parts of a log a query needs: by store times, consume queues and key indexes."""
