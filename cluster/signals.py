"""The signals that end what runs in the foreground."""

from __future__ import annotations

import signal


def stop_signals() -> tuple[signal.Signals, ...]:
    """Ctrl-C, SIGTERM and, unless ``nohup`` keeps it away, the end of the terminal."""
    wanted = (signal.SIGINT, signal.SIGTERM)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        return wanted
    return (*wanted, signal.SIGHUP)
