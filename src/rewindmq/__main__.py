"""The one entry point: ``rewindmq <command>``."""

from __future__ import annotations


def main() -> int:
    """Placeholder until the command table lands."""
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
