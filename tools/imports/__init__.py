"""The import graph of the product: its circles, and the tables and pictures drawn from it."""
