"""``./scripts/worst_frames``: prints how long each worst frame holds a server's event loop."""

from __future__ import annotations

import argparse
import logging
import os
import sys

from tools.worst_frames.measuring import KINDS, FrameHold, measure
from tools.worst_frames.page import PAGE, replaced, table
from tools.worst_frames.sizes import FULL, reduced

EPILOG = """\
examples:
  ./scripts/worst_frames                      print both tables; minutes
  ./scripts/worst_frames --write              write them to docs/event_loop.md
  ./scripts/worst_frames --code 208 --code 21 two requests of the broker
  ./scripts/worst_frames --divide 50          tables that are a fiftieth of the limits

Times are milliseconds of processor time, so other work of the machine adds no waits.
"""


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="worst_frames",
        description="Send the worst legal frame of each request code to servers with full tables.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--server", choices=[kind.title for kind in KINDS], help="only this kind of server")
    parser.add_argument(
        "--code", type=int, action="append", default=[], metavar="N", help="only this request"
    )
    parser.add_argument("--divide", type=int, default=1, metavar="N", help="divide the tables' sizes by N")
    parser.add_argument("--write", action="store_true", help="write the tables to docs/event_loop.md")
    arguments = parser.parse_args()
    if arguments.write and (arguments.code or arguments.divide != 1):
        parser.error("--write needs every request at full size")
    # A server writes its log; here nobody reads it.
    with open(os.devnull, "w") as log:  # noqa: PTH123
        logging.basicConfig(stream=log, level=logging.INFO)
        return _run(arguments)


def _run(arguments: argparse.Namespace) -> int:
    sizes = FULL if arguments.divide == 1 else reduced(arguments.divide)
    tables = {}
    for kind in KINDS:
        if arguments.server not in (None, kind.title):
            continue
        if not arguments.code or not kind.hall.codes.isdisjoint(arguments.code):
            print(f"filling a {kind.title} ...", file=sys.stderr)
            tables[kind.title] = table(measure(kind, sizes, arguments.code, _show))
    for title, text in tables.items():
        print(f"\n{title}\n\n{text}")
    if arguments.write:
        PAGE.write_text(replaced(PAGE.read_text(), tables))
    return 0


def _show(hold: FrameHold) -> None:
    print(f"{hold.hold_ms:10.1f} ms  {hold.name}  {hold.text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
