"""Statistics of topics, groups and the broker: what is sent and pulled in a minute, an hour and a day."""
