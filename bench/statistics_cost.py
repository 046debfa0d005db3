"""What the broker's statistics cost: its processor time as it is, and without the lines that count.

Two processes serve the same load of ``bench/hot_path.py`` in turn, run by run. In one of them, the lines of
``COUNTING`` are left out of the modules when these are imported. The table shows the difference of the
fastest runs.

The native kernel is the same in both, so its part is not in the difference: it returns three numbers for each
queue of a run of sends, and two for each pull.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType
from typing import IO, Any, Final

# The lines that count a send, a batch or a pull on its way to the response, by module.
COUNTING: Final[Mapping[str, Sequence[str]]] = {
    "rewindmq.broker.store.messages.writer": (
        # Of a single message.
        """\
        counts = self.counts
        if not queue.put_bytes:
            counts.begin(queue)
        queue.put_requests += 1
        queue.put_bytes += size
        counts.last = queue
""",
        # Of a batch.
        """\
        self.counts.add(queue, 1, count - 1, total)
""",
        # Of a run that the kernel encoded.
        """\
        counts = self.counts
""",
        """\
            if not queue.put_bytes:
                counts.begin(queue)
            queue.put_requests += requests
            queue.put_bytes += size
            if extra:
                queue.put_extra += extra
        counts.last = queue
""",
    ),
    "rewindmq.broker.pull.puller": (
        """\
        found = result.message_count
        if found:
            self._pulls.count(topic, header.consumer_group, queue_id, found, len(result.body))
        else:
            self._stats.missed_total += 1
            self._pulls.last = None
""",
    ),
    "rewindmq.broker.pull.plain_pulls": (
        """\
        counts = self._pulls
        pulls = queue.pulls.get(group) or counts.in_queue(queue, group)
        if not pulls.requests:
            counts.begin(pulls)
        pulls.requests += 1
        pulls.messages += found
        pulls.size += size
        counts.last = pulls
""",
    ),
}
# Percent of the time of a send, a batch or a pull.
GOAL: Final = 2.0
_WITHOUT: Final = "without"
_NATIVE: Final = "native"


def without_counting(name: str, source: str) -> str:
    """Return a module's source without the lines that count.

    Raises:
        ValueError: the source does not have these lines.
    """
    for lines in COUNTING[name]:
        if lines not in source:
            raise ValueError(
                f"{name} has no lines {lines!r}: bench/statistics_cost.py must name those that count"
            )
        source = source.replace(lines, "", 1)
    return source


class _Loader(SourceFileLoader):
    def get_code(self, fullname: str) -> CodeType:
        source = without_counting(fullname, self.get_data(self.path).decode())
        return compile(source, self.path, "exec", dont_inherit=True)


class _Finder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(fullname, path, target) if fullname in COUNTING else None
        if spec is not None and spec.origin is not None:
            spec.loader = _Loader(fullname, spec.origin)
        return spec


class Server:
    """A process that serves one load whenever asked."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._asked: IO[str] = process.stdin
        self._told: IO[str] = process.stdout

    def run(self) -> float:
        """Return the microseconds for one item in one run."""
        self._asked.write("\n")
        self._asked.flush()
        return float(self._told.readline())


@contextmanager
def serving(load: int, profile: str, seed: int, *, is_native: bool, counts: bool) -> Iterator[Server]:
    """Start a process for a load, given by its number in ``hot_path.LOADS``.

    Args:
        seed: of the hashes of strings, which decide where dicts have their entries.
    """
    kernel, counting = _NATIVE if is_native else "pure", "with" if counts else _WITHOUT
    command = [sys.executable, "-m", "bench.statistics_cost", str(load), profile, kernel, counting]
    pipe, environment = subprocess.PIPE, {**os.environ, "PYTHONHASHSEED": str(seed)}
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment) as process:
        try:
            yield Server(process)
        finally:
            assert process.stdin is not None
            process.stdin.close()


def measure(load: int, profile: str, seed: int, runs: int, *, is_native: bool) -> tuple[float, float]:
    """Return the microseconds for one item, without and with counting, in the fastest of ``runs`` runs."""
    with ExitStack() as stack:
        servers = [
            stack.enter_context(serving(load, profile, seed, is_native=is_native, counts=counts))
            for counts in (False, True)
        ]
        samples: tuple[list[float], list[float]] = ([], [])
        for number in range(runs):
            # Neither is always the first.
            for which in (0, 1) if number % 2 else (1, 0):
                samples[which].append(servers[which].run())
    return min(samples[0]), min(samples[1])


async def _serve(load: int, profile: str, kernel: str) -> None:
    # Imported here, after the finder is in its place.
    from bench import hot_path
    from rewindmq.protocol.profile import Profile
    from rewindmq.protocol.remoting.process.speedups import load_speedups

    speedups: Any = load_speedups() if kernel == _NATIVE else None
    async with hot_path.prepared(hot_path.LOADS[load], speedups, Profile(profile)) as run:
        loop = asyncio.get_running_loop()
        while await loop.run_in_executor(None, sys.stdin.readline):
            print(await run(), flush=True)


def main() -> None:
    """Serve one load, a run for each line of the standard input."""
    load, profile, kernel, counting = sys.argv[1:]
    if counting == _WITHOUT:
        sys.meta_path.insert(0, _Finder())
    import uvloop

    uvloop.run(_serve(int(load), profile, kernel))


if __name__ == "__main__":
    main()
