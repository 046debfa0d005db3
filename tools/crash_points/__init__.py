"""Cuts the power of a simulated broker after every write, restarts it and checks what the disk has kept."""
