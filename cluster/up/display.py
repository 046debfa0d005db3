"""What ``rewindmq up`` and ``rewindmq members`` print."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict

from rewindmq.cluster.local_cluster import LocalCluster
from rewindmq.cluster.server_process import ServerProcess
from rewindmq.cluster.up.entrances import Entrances


def table(rows: Iterable[Sequence[str]]) -> list[str]:
    """Return rows as lines with aligned columns."""
    rows = list(rows)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return [line.rstrip() for line in lines]


def ready_table(
    processes: Iterable[ServerProcess],
    namesrv_address: str,
    entrances: Entrances | None = None,
    dashboard: str | None = None,
) -> str:
    """Return the text for people."""
    rows = [("process", "address", "pid", "log")]
    rows += [
        (process.name, process.address, str(process.pid), str(process.log_path)) for process in processes
    ]
    lines = [*table(rows), "", f"export NAMESRV_ADDR={namesrv_address}"]
    if entrances is not None:
        lines += [
            f"control port {entrances.control}, its token is in {entrances.token_file}",
            f"rules see the clients whose name server is {entrances.wire}",
        ]
    if dashboard is not None:
        lines.append(f"dashboard {dashboard}")
    lines.append("ready; Ctrl-C stops all processes")
    return "\n".join(lines)


def ready_json(
    cluster: LocalCluster, entrances: Entrances | None = None, dashboard: str | None = None
) -> str:
    """Return the line for programs."""
    ready: dict[str, object] = {
        "ready": "cluster",
        "namesrv": {"address": cluster.namesrv_address, "pid": cluster.namesrv.pid},
        "brokers": {
            name: {"address": broker.address, "pid": broker.pid}
            for name, broker in (cluster.brokers | cluster.slaves).items()
        },
        "directory": str(cluster.directory),
        "pid": os.getpid(),
    }
    if entrances is not None:
        ready["entrances"] = asdict(entrances)
    if dashboard is not None:
        ready["dashboard"] = dashboard
    return json.dumps(ready, separators=(",", ":"))
