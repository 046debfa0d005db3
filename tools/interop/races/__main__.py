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
from tools.interop.races.play import CellResult, play
from tools.interop.races.table import figures, keep, table


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.interop.races", description=__doc__)
    parser.add_argument("--race", action="append", help="id in the catalogue; may be repeated")
    parser.add_argument("--client", action="append", help="release of the Java client; may be repeated")
    parser.add_argument("--servers", choices=("rocketmq", "rewindmq"), help="whose brokers")
    parser.add_argument("--mode", choices=("classic", "server"), help="reset mode")
    parser.add_argument(
        "--default",
        action="store_true",
        help="run only the cells that CI runs",
    )
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
        and (options.servers is None or cell.cluster.is_real == (options.servers == "rocketmq"))
    ]
    if options.table is not None:
        print(table(cells, options.table))
        return 0
    with tempfile.TemporaryDirectory(prefix="rewindmq-races-") as directory:
        results = play(cells, Path(directory), partial(_report, options.histories))
    return 0 if all(one.error is None and one.cell.agrees(one.verdict.losses) for one in results) else 1


def _report(histories: Path | None, result: CellResult) -> None:
    print(row(result), flush=True)
    if histories is not None:
        history = result.raw if result.error else result.history
        keep(result.cell, history, result.error, histories)


def row(result: CellResult) -> str:
    """Return one line of the table."""
    cell = result.cell
    claimed, found = losses_text(cell.claimed), losses_text(result.verdict.losses)
    if result.error is not None:
        found = f"not played: {result.error}"
    text = f"{cell.race} | {cell.client} | {cell.cluster} | {claimed} | {found} | {figures(result.verdict)}"
    return f"| {text} | {result.seconds:.0f} s |"


if __name__ == "__main__":
    raise SystemExit(main())
