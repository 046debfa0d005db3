"""Whether a store is what it should be, and whether an output holds what it has to."""
