"""Plays races of the catalogue, once or many times."""
