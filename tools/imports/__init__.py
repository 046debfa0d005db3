"""The import graph of the product: its circles, and the tables and pictures that are drawn from it."""
