"""Views of a store, a module each: split the rows into parts, and read the parts in tasks."""
