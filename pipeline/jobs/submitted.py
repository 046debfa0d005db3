"""Runs a command in the session that ``spark-submit`` made."""

from __future__ import annotations

import argparse
import importlib
import sys

from rewindmq.pipeline.cli import SUB_COMMANDS
from rewindmq.protocol.errors import RewindMQError
from rewindmq.protocol.text import escape_controls


def run_submitted(name: str) -> int:
    """Run ``rewindmq pipeline <name>`` with this process's arguments; returns the exit code."""
    module = importlib.import_module(SUB_COMMANDS[name].module)
    parser = argparse.ArgumentParser(
        prog=f"spark-submit {sys.argv[0]}",
        epilog=module.EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    module.add_arguments(parser)
    try:
        code: int = module.run(parser.parse_args())
    except (RewindMQError, OSError) as error:
        print(escape_controls(f"{name}: {error}"), file=sys.stderr)
        return 1
    return code
