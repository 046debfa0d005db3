"""The race laboratory: plays, searches, judges and draws the races in which an offset reset is lost."""
