"""The race laboratory: the real processes' code under a virtual clock and a seeded schedule."""
