"""``python -m tools.interop.races``: runs the races for real, and prints each cell of the table when it ends.

``--race`` and ``--client`` choose cells, ``--histories DIR`` keeps the recorded events.
"""

from __future__ import annotations

import argparse
import tempfile
from functools import partial
from pathlib import Path

from tools.interop.races.cell import losses_text
from tools.interop.races.cells import ALL, DEFAULT
from tools.interop.races.play import Seen, play
from tools.interop.races.table import figures, keep, table


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.interop.races", description=__doc__)
    parser.add_argument("--race", action="append", help="id in the catalogue; may be repeated")
    parser.add_argument("--client", action="append", help="release of the Java client; may be repeated")
    parser.add_argument("--servers", choices=("real", "ours"))
    parser.add_argument("--mode", choices=("classic", "server"))
    parser.add_argument("--default", action="store_true", help="only the cells that CI plays")
    parser.add_argument("--histories", type=Path, help="directory for one file of events per cell")
    parser.add_argument(
        "--table", type=Path, nargs="+", help="run no race: print the table of these directories of histories"
    )
    options = parser.parse_args()
    cells = [
        cell
        for cell in (DEFAULT if options.default else ALL)
        if (not options.race or cell.race in options.race)
        and (not options.client or cell.client in options.client)
        and (options.mode is None or cell.cluster.mode == options.mode)
        and (options.servers is None or cell.cluster.is_real == (options.servers == "real"))
    ]
    if options.table is not None:
        print(table(cells, options.table))
        return 0
    with tempfile.TemporaryDirectory(prefix="rewindmq-races-") as directory:
        seen = play(cells, Path(directory), partial(_told, options.histories))
    return 0 if all(one.error is None and one.cell.agrees(one.verdict.losses) for one in seen) else 1


def _told(histories: Path | None, seen: Seen) -> None:
    print(row(seen), flush=True)
    if histories is not None:
        history = seen.raw if seen.error else seen.history
        keep(seen.cell, history, seen.error, histories)


def row(seen: Seen) -> str:
    """Return one line of the table."""
    cell = seen.cell
    claimed, found = losses_text(cell.claimed), losses_text(seen.verdict.losses)
    if seen.error is not None:
        found = f"not played: {seen.error}"
    text = f"{cell.race} | {cell.client} | {cell.cluster} | {claimed} | {found} | {figures(seen.verdict)}"
    return f"| {text} | {seen.seconds:.0f} s |"


if __name__ == "__main__":
    raise SystemExit(main())
