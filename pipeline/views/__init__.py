"""The views of a store, one module each: how its rows are planned as parts and read by tasks."""
