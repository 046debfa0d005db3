"""What every page shares: registration, rendering, safety and live updates."""
