"""The loads of ``scripts/bench``: each returns its rows of the table."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import uvloop

from bench import (
    bystander,
    classic_reset,
    cluster_start,
    consuming,
    dashboard_cluster,
    dashboard_pages,
    echo,
    fenced_reset,
    hot_path,
    many_queues,
    races,
    recovery,
    route_lookups,
    searching,
    sending,
    simulation,
    snapshots,
    socket_sends,
    testkit,
    watched,
)
from bench.pipeline import bench_pipeline, bench_pipeline_in_full
from bench.table import Row
from rewindmq import LocalCluster
from rewindmq.broker.store.model import SearchMode
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.remoting.process.runner import raise_descriptor_limit
from rewindmq.protocol.remoting.process.speedups import describe_speedups, load_speedups
from rewindmq.protocol.reset_mode import ResetMode

_QUEUE_ENTRIES = 10_000_000
_CONSUMERS = 500
_FENCED_CONSUMERS = 1_000
_SEARCHES = 2_000


def say(text: str) -> None:
    """Print progress on standard error."""
    print(text, file=sys.stderr, flush=True)


def _run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    # Server processes tune the garbage collector at their start; the driving process does the same.
    gc.collect()
    gc.freeze()
    return uvloop.run(coroutine)


def bench_cluster_start(rounds: int, scale: float) -> list[Row]:
    """Measure start and idle memory of one name server and two brokers."""
    start = Row("cluster of 1 + 2 processes, command to serving", "s", 0.6, higher_is_better=False)
    namesrv = Row("idle memory, name server", "MB", 40, higher_is_better=False)
    broker = Row("idle memory, broker (the larger one)", "MB", 40, higher_is_better=False)
    for number in range(rounds):
        say(f"cluster start, round {number + 1} of {rounds}")
        with cluster_start.running_cluster(2) as (ready, seconds):
            start.samples.append(seconds)
            sizes = [cluster_start.resident_megabytes(pid) for pid in cluster_start.process_pids(ready)]
            namesrv.samples.append(sizes[0])
            broker.samples.append(max(sizes[1:]))
    return [start, namesrv, broker]


def bench_send(rounds: int, scale: float) -> list[Row]:
    """Measure sends, and an echo of the same bytes in the same rounds."""
    size = sending.frame_bytes()
    note = f"frames of {size} B; one future per frame, as many coroutines awaiting as frames in flight"
    echo_256 = Row("echo, 256 in flight, awaited", "/s", note=note)
    streamed = Row("echo, 256 in flight, streamed", "/s", note="the same bytes with no state per frame")
    echo_1 = Row("echo, 1 in flight", "/s")
    send_256 = Row(
        "send, 1 KiB, one connection, 256 in flight, ASYNC_FLUSH",
        "/s",
        60_000,
        limit=echo_256,
        limit_share=0.25,
    )
    send_1 = Row("send, 1 KiB, 1 in flight", "/s", 20_000, limit=echo_1)
    cpu = [Row(f"the same, CPU of the {end} per message", "us") for end in ("broker", "client")]
    one_core = "both ends kept on one core, where waking the other end takes no interrupt"
    echo_core = Row("echo, 1 in flight, one core", "/s", note=one_core)
    send_core = Row("send, 1 KiB, 1 in flight, one core", "/s", limit=echo_core, note=one_core)
    batch = Row("batch send, 64 x 100 B", "msg/s", 400_000, note="16 batches in flight")
    with cluster_start.running_cluster(1) as (ready, _), echo.echo_server() as (port, echo_pid):
        address = ready["namesrv"]["address"]
        broker_pid = cluster_start.process_pids(ready)[1]
        ends = (broker_pid, os.getpid())
        for number in range(rounds):
            say(f"send, round {number + 1} of {rounds}")
            many, few = int(200_000 * scale), int(20_000 * scale)
            echo_256.samples.append(_run(echo.awaited(port, size, 256, many)))
            before = [cluster_start.cpu_seconds(pid) for pid in ends]
            send_256.samples.append(_run(sending.pipelined(address, 256, many)))
            for row, pid, start in zip(cpu, ends, before, strict=True):
                row.samples.append((cluster_start.cpu_seconds(pid) - start) / many * 1e6)
            streamed.samples.append(_run(echo.streamed(port, size, 256, many)))
            echo_1.samples.append(_run(echo.awaited(port, size, 1, few)))
            send_1.samples.append(_run(sending.pipelined(address, 1, few)))
            with cluster_start.on_one_core(echo_pid, broker_pid):
                echo_core.samples.append(_run(echo.awaited(port, size, 1, few)))
                send_core.samples.append(_run(sending.pipelined(address, 1, few)))
            batch.samples.append(_run(sending.batched(address, int(1_000_000 * scale))))
    return [streamed, echo_256, send_256, *cpu, echo_1, send_1, echo_core, send_core, batch]


def bench_consume(rounds: int, scale: float) -> list[Row]:
    """Measure push consumption of a backlog; every round uses a new group."""
    row = Row(
        "push consume, pull batch 32, through the listener",
        "msg/s",
        150_000,
        note="100 B bodies, one broker, 4 queues; async listener, consume_message_batch_max_size 32",
    )
    total = int(500_000 * scale)
    with cluster_start.running_cluster(1) as (ready, _):
        address = ready["namesrv"]["address"]
        say("consume, filling the backlog")
        _run(consuming.fill(address, "ConsumeTopic", total))
        for number in range(rounds):
            say(f"consume, round {number + 1} of {rounds}")
            group = f"BenchmarkGroup{number}"
            row.samples.append(_run(consuming.consumed(address, "ConsumeTopic", group, total)))
    return [row]


def bench_reset(rounds: int, scale: float) -> list[Row]:
    """Measure the time from a classic reset to its last notification."""
    row = Row(
        f"classic reset: last of {_CONSUMERS} consumers notified",
        "ms",
        50,
        higher_is_better=False,
        note="all consumers are connections of one process",
    )
    with cluster_start.running_cluster(1) as (ready, _):
        say("classic reset")
        broker = ready["brokers"]["broker-a"]["address"]
        row.samples = _run(
            classic_reset.connected_consumers_notified(
                ready["namesrv"]["address"], broker, _CONSUMERS, rounds
            )
        )
    return [row]


def bench_fenced_reset(rounds: int, scale: float) -> list[Row]:
    """Measure the time from a fenced reset to the first redelivery."""
    many = max(1, int(_FENCED_CONSUMERS * scale))
    rows = {
        1: Row("fenced reset: first redelivery, 1 consumer", "ms", 50, higher_is_better=False),
        many: Row(
            f"fenced reset: {many:,} consumers all redelivering",
            "ms",
            500,
            higher_is_better=False,
            note="one queue each; all consumers are in one process",
        ),
    }
    with LocalCluster(1, broker_config=fenced_reset.BROKER_CONFIG) as cluster:
        for consumers, row in rows.items():
            say(f"fenced reset, {consumers} consumers")
            address = cluster.brokers["broker-a"].address
            row.samples = _run(fenced_reset.redelivered(cluster.namesrv_address, address, consumers, rounds))
    return list(rows.values())


def bench_watched(rounds: int, scale: float) -> list[Row]:
    """Measure what a watcher says of kept resets, and when."""
    rows: list[Row] = []
    for load in watched.LOADS:
        for mode in (ResetMode.CLASSIC, ResetMode.FENCED):
            title = f"watched reset, {mode}: {load.title}"
            share = 99.5 if not load.per_second else 95.0
            proven = Row(f"{title}: proven queues", "%", share)
            late = Row(f"{title}: after the last redelivery", "s", 5.0, higher_is_better=False)
            with LocalCluster(1) as cluster:
                address = cluster.brokers["broker-a"].address
                for number in range(rounds):
                    say(f"{title}, round {number + 1} of {rounds}")
                    name = f"Watched{number}"
                    each = _run(watched.measure(cluster.namesrv_address, address, load, mode, name))
                    proven.samples.append(100 * each.proven)
                    late.samples.append(each.seconds)
                    if not each.is_kept:
                        proven.note = "a reset was not kept"
            rows += [proven, late]
    return rows


def bench_search(rounds: int, scale: float) -> list[Row]:
    """Measure the search by time of both releases."""
    entries = int(_QUEUE_ENTRIES * scale)
    modes = {SearchMode.NEAREST: "4.x, nearest", SearchMode.BOUNDARY: "5.x, lower boundary"}
    rows = {
        mode: Row(f"search by time, {entries:,} entries ({name})", "us", 50, higher_is_better=False)
        for mode, name in modes.items()
    }
    say(f"search, filling a queue of {entries:,} entries")
    with searching.filled_store(entries) as store:
        for number in range(rounds):
            for mode, row in rows.items():
                row.samples.append(searching.search_microseconds(store, mode, _SEARCHES, number))
    return list(rows.values())


def bench_hot_path(rounds: int, scale: float, profile: Profile = Profile.V49) -> list[Row]:
    """Measure the processor time of the broker's own code, without a socket."""
    broker = "broker alone" if profile is Profile.V49 else f"broker alone, {profile}"
    rows = {
        load: Row(f"{broker}: {load.title}", f"us/{load.item}", higher_is_better=False)
        for load in hot_path.LOADS
    }
    next(iter(rows.values())).note = (
        "frames as the Java client sends them, passed to a broker in this process; the fastest run of each"
        " round; the rows below likewise"
    )
    passes = max(5, int(100 * scale))
    speedups = load_speedups()
    native = {
        load: Row(
            f"{row.name}, with the kernel", row.unit, higher_is_better=False, limit=row, limit_name="pure"
        )
        for load, row in rows.items()
        if load.is_accelerated and speedups is not None
    }
    for number in range(rounds):
        for load, row in rows.items():
            say(f"hot path, {profile}, round {number + 1} of {rounds}: {load.title}")
            row.samples.append(hot_path.microseconds(load, passes, profile=profile))
            if load in native:
                native[load].samples.append(hot_path.microseconds(load, passes, speedups, profile))
    return [row for load in rows for row in (rows[load], native.get(load)) if row is not None]


def bench_socket_sends(rounds: int, scale: float) -> list[Row]:
    """Measure sends of a raw client, which costs less than a real one, with and without the kernel."""
    rows: list[Row] = []
    runs: list[tuple[bool, int, Row, Row]] = []
    is_native = load_speedups() is not None
    for size in (100, 1_024):
        load = f"raw client over a socket, {size:,} B, 256 in flight"
        rate = Row(load, "/s", note=f"frames as the Java client writes them; {describe_speedups()}")
        cpu = Row(f"{load}: the broker's processor time", "us", higher_is_better=False)
        rows += [rate, cpu]
        runs.append((True, size, rate, cpu))
        if is_native:
            native_rate = Row(f"{load}, with the kernel", "/s", limit=rate, limit_name="pure")
            native_cpu = Row(
                f"{cpu.name}, with the kernel", "us", higher_is_better=False, limit=cpu, limit_name="pure"
            )
            rows += [native_rate, native_cpu]
            runs.append((False, size, native_rate, native_cpu))
    for number in range(rounds):
        for is_pure, size, rate, cpu in runs:
            say(f"raw sends, round {number + 1} of {rounds}: {rate.name}")
            with socket_sends.running_broker(is_pure=is_pure) as (host, port, pid):
                total = int(200_000 * scale)
                each = _run(socket_sends.measure(host, port, pid, size, 256, total))
            rate.samples.append(each[0])
            cpu.samples.append(each[1])
    return rows


def bench_many_queues(rounds: int, scale: float) -> list[Row]:
    """Measure puts in a store whose queues take turns."""
    raise_descriptor_limit()
    rows = {
        queues: Row(f"store alone: put, 100 B, {queues:,} queues in turn", "us", higher_is_better=False)
        for queues in (250, 300, 3_000)
    }
    for number in range(rounds):
        for queues, row in rows.items():
            say(f"many queues, round {number + 1} of {rounds}: {queues}")
            row.samples.append(many_queues.put_microseconds(queues, int(10_000 * scale)))
    return list(rows.values())


def bench_recovery(rounds: int, scale: float) -> list[Row]:
    """Measure the start after a clean stop and after a crash, with a warm page cache."""
    size = int(scale * recovery.GIB / 16)
    tail = 10_000
    rows = []
    for body in (1_024, 100):
        say(f"recovery, filling {size >> 20} MiB with messages of {body:,} B")
        name = f"messages of {body:,} B"
        crash = Row(
            f"recovery after a crash, {name}",
            "s/GiB",
            1.0,
            higher_is_better=False,
            note=f"processor time; reads {tail:,} messages behind the checkpoint and those of 3 s before it",
        )
        clean = Row(f"recovery after a clean stop, {name}", "s/GiB", 1.0, higher_is_better=False)
        clean.note = "processor time; every record of the last three segments is read"
        lost = Row(f"recovery after a crash without a checkpoint, {name}", "s/GiB", higher_is_better=False)
        lost.note = "processor time; every record is read, and every queue entry is built again"
        served = {
            is_clean: Row(
                f"broker's command to a send and a pull, {what}, {name}", "s", higher_is_better=False
            )
            for is_clean, what in ((False, "crash"), (True, "clean stop"))
        }
        with recovery.killed_store(size, body, tail) as root:
            for number in range(rounds):
                say(f"recovery, messages of {body:,} B, round {number + 1} of {rounds}")
                for row, is_clean, has_checkpoint in (
                    (crash, False, True),
                    (clean, True, True),
                    (lost, False, False),
                ):
                    seconds, length = recovery.open_seconds(
                        root, is_clean=is_clean, has_checkpoint=has_checkpoint
                    )
                    row.samples.append(seconds * recovery.GIB / length)
                for is_clean, row in served.items():
                    row.samples.append(recovery.serve_seconds(root, is_clean=is_clean))
                    row.note = f"wall time; a log of {length >> 20} MiB"
        rows += [crash, clean, lost, *served.values()]
    return rows


def bench_route_lookups(rounds: int, scale: float) -> list[Row]:
    """Measure look-ups of topics at 1 and at 10 of 100 brokers."""
    rows = []
    for copies in (1, 10):
        fleet = route_lookups.Fleet(100, max(1_000, int(100_000 * scale)), copies)
        name = f"route look-ups, {fleet.topics:,} topics at {copies} of {fleet.brokers} brokers"
        rate, cpu = Row(name, "/s"), Row(f"{name}, processor time", "us", higher_is_better=False)
        # Its one broker has nothing to do.
        with LocalCluster(1) as cluster, route_lookups.registered(cluster.namesrv_address, fleet):
            for number in range(rounds):
                say(f"{name}, round {number + 1} of {rounds}")
                total = max(1_000, int(40_000 * scale))
                pid = cluster.namesrv.pid
                samples = _run(route_lookups.looked_up(cluster.namesrv_address, pid, fleet, total))
                for row, sample in zip((rate, cpu), samples, strict=True):
                    row.samples.append(sample)
        rows += [rate, cpu]
    return rows


def bench_snapshots(rounds: int, scale: float) -> list[Row]:
    """Measure snapshots of a cluster: with small segments, and with segments of RocketMQ's default size."""
    rows = []
    # A log that nearly fills a segment of the default size is the worst case: all of it is copied.
    for segment, share in ((64 << 20, 1.0), (snapshots.GIB, 0.95)):
        size = int(snapshots.GIB * scale * share)
        what = f"{size >> 20} MiB, segments of {segment >> 20} MiB"
        has_target = segment < snapshots.GIB
        take = _wall_and_cpu(f"snapshot and files of a restore, {what}", "ms", 100 if has_target else None)
        restart = _wall_and_cpu(f"restore without its files, {what}", "s", 0.3 if has_target else None)
        restart[0].note = "kill, and start of name server and broker until both serve"
        say(f"snapshots, filling {what}")
        with snapshots.filled_cluster(size, segment) as cluster:
            for number in range(rounds):
                say(f"snapshots, {what}, round {number + 1} of {rounds}")
                seconds = snapshots.measure(cluster)
                _add_cost(take, seconds.take + seconds.put_back, seconds.files_cpu, 1_000)
                _add_cost(restart, seconds.restart, seconds.restart_cpu, 1)
        rows += [*take, *restart]
    return rows


def bench_races(rounds: int, scale: float) -> list[Row]:
    """Measure the race laboratory."""
    simulated = Row("race laboratory: R1 simulated, one core", "runs/s")
    explored = {
        mode: Row(
            f"race laboratory: schedules drawn at random, one core ({mode})",
            "schedules/s",
            500,
            note="model one-reset; a schedule that is drawn again is not run again; a sample runs twice",
        )
        for mode in ResetMode
    }
    run = {
        mode: Row(
            f"race laboratory: different schedules run in the same searches, one core ({mode})",
            "schedules/s",
            500,
            note="each runs the real code from the opening of the window until the cluster is at rest",
        )
        for mode in ResetMode
    }
    held = Row("race laboratory: the slowest enforced race on real sockets", "s", 2.0, higher_is_better=False)
    runs, schedules = max(10, int(200 * scale)), max(100, int(2_000 * scale))
    for number in range(rounds):
        say(f"races, round {number + 1} of {rounds}")
        simulated.samples.append(races.simulated_rate("R1", runs))
        for mode, row in explored.items():
            drawn_rate, run_rate = races.explored_rates(mode, schedules, number)
            row.samples.append(drawn_rate)
            run[mode].samples.append(run_rate)
        seconds = races.held_seconds()
        slowest = max(seconds, key=lambda race_id: seconds[race_id])
        held.samples.append(seconds[slowest])
        held.note = f"the slowest of {len(seconds)} races, each run once a round; {slowest} in the last round"
    return [simulated, *explored.values(), *run.values(), held]


def bench_simulation(rounds: int, scale: float) -> list[Row]:
    """Measure simulated tests of an application."""
    row = Row(
        "simulated test of an application: send 10, consume 10",
        "seeds/s",
        100,
        note="seconds of processor time; each seed has a new cluster of a name server and a broker",
    )
    count = max(10, int(200 * scale))
    for number in range(rounds):
        say(f"simulation, round {number + 1} of {rounds}")
        row.samples.append(simulation.seed_rate(range(number * count, (number + 1) * count)))
    return [row]


def bench_testkit(rounds: int, scale: float) -> list[Row]:
    """Measure what the test kit adds to a test, in wall time and in processor time of all processes."""
    fixture = _wall_and_cpu("test kit: fixture ready, name server and two brokers", "s", 0.4)
    fresh = _wall_and_cpu("test kit: topic, group with a consumer, and producer of a test", "ms", 20)
    example = _wall_and_cpu("test kit: the tests of examples/order_service, one process", "s", 15)
    names = max(5, int(20 * scale))
    for number in range(rounds):
        say(f"test kit, round {number + 1} of {rounds}")
        ready = testkit.fixture_ready()
        _add_cost(fixture, ready.wall, ready.cpu, 1)
        for cost in testkit.fresh_names(names):
            _add_cost(fresh, cost.wall, cost.cpu, 1_000)
        tests, summary = testkit.example_tests()
        _add_cost(example, tests.wall, tests.cpu, 1)
        example[0].note = summary
    return [*fixture, *fresh, *example]


def _wall_and_cpu(name: str, unit: str, target: float | None) -> tuple[Row, Row]:
    wall = Row(name, unit, target, higher_is_better=False)
    return wall, Row("the same, processor time of all processes", unit, higher_is_better=False)


def _add_cost(rows: tuple[Row, Row], wall: float, cpu: float, factor: float) -> None:
    """Add a sample to both rows; ``factor`` turns seconds into the rows' unit."""
    rows[0].samples.append(wall * factor)
    rows[1].samples.append(cpu * factor)


def bench_dashboard(rounds: int, scale: float) -> list[Row]:
    """Measure every page of the dashboard at a large cluster, in wall time and in processor time."""
    rows = {
        name: _wall_and_cpu(f"dashboard: {name}", "ms", None if name == dashboard_pages.SCRAPE else 300)
        for name in dashboard_pages.NAMES
    }
    next(iter(rows.values()))[0].note = (
        f"{dashboard_cluster.TOPICS:,} topics of {dashboard_cluster.QUEUES} queues, one of"
        f" {dashboard_cluster.WIDE_QUEUES:,}, and {dashboard_cluster.GROUPS:,} groups at one broker, messages"
        " in some of the topics; from the request to the last byte; the rows below likewise"
    )
    hold = Row("dashboard: longest hold of its event loop by a page", "ms", 10, higher_is_better=False)
    longest: list[tuple[float, str]] = []
    say("dashboard, filling the store")
    with dashboard_cluster.large_cluster() as large:
        for number in range(rounds):
            say(f"dashboard, round {number + 1} of {rounds}")
            costs = _run(dashboard_pages.costs(large))
            for name, cost in costs.items():
                _add_cost(rows[name], cost.wall, cost.cpu, 1)
            hold.samples.append(max(cost.hold for cost in costs.values()))
            longest += [(cost.hold, name) for name, cost in costs.items()]
    hold.note = "processor time of the loop's thread; the longest: " + "; ".join(
        f"{name} {ms:.1f} ms" for ms, name in sorted(longest, reverse=True)[:3]
    )
    return [*(row for pair in rows.values() for row in pair), hold]


def bench_bystanders(rounds: int, scale: float) -> list[Row]:
    """Measure how long a plain request of another connection waits beside three loads."""
    seconds = max(2.0, 12.0 * scale)
    places = {
        "heartbeats": (f"{bystander.HEARTBEATS} connections that repeat heartbeats of 473 KB", 50),
        "members": (
            f"{bystander.MEMBERS} members, {bystander.CHANGES_PER_SECOND} join or leave a second",
            100,
        ),
        "page": ("scrapes of 101,000 queues, at the dashboard", 50),
        "broker": ("scrapes of 101,000 queues, at the broker", 50),
    }
    rows = {
        (place, name): Row(
            f"bystander, {what}: {name}", "ms", target if name == "worst" else None, higher_is_better=False
        )
        for place, (what, target) in places.items()
        for name in ("p50", "p99", "worst")
    }
    busy: list[float] = []

    def add(place: str, waits: bystander.BystanderWaits) -> None:
        for name in ("p50", "p99", "worst"):
            rows[place, name].samples.append(getattr(waits, name))
        busy.append(waits.busy)

    say("bystanders, filling the store")
    with dashboard_cluster.large_cluster() as large:
        (broker,) = large.cluster.brokers.values()
        with bystander.running_dashboard(large.cluster.namesrv_address) as dashboard:
            for number in range(rounds):
                say(f"bystanders, round {number + 1} of {rounds}")
                at_dashboard, at_broker = bystander.beside_scrapes(dashboard, broker.address, seconds)
                add("page", at_dashboard)
                add("broker", at_broker)
    for _ in range(rounds):
        for load in ("heartbeats", "members"):
            add(load, bystander.beside_broker(load, seconds))
    next(iter(rows.values())).note = (
        f"{min(busy):.1f} to {max(busy):.1f} of {os.cpu_count()} processors were busy; best rounds: "
        + "; ".join(f"{place} {min(rows[place, 'worst'].samples):.1f}" for place in places)
    )
    return list(rows.values())


LOADS: dict[str, Callable[[int, float], list[Row]]] = {
    "start": bench_cluster_start,
    "send": bench_send,
    "consume": bench_consume,
    "reset": bench_reset,
    "fenced": bench_fenced_reset,
    "search": bench_search,
    "hot-path": bench_hot_path,
    "raw-send": bench_socket_sends,
    "routes": bench_route_lookups,
    "queues": bench_many_queues,
    "recovery": bench_recovery,
    "snapshots": bench_snapshots,
    "races": bench_races,
    "simulation": bench_simulation,
    "testkit": bench_testkit,
    "dashboard": bench_dashboard,
    "pipeline": bench_pipeline,
}
# Loads that take minutes or repeat another one, run with --full or by name.
FULL_LOADS: dict[str, Callable[[int, float], list[Row]]] = {
    "watch": bench_watched,
    "bystanders": bench_bystanders,
    "hot-path-v53": partial(bench_hot_path, profile=Profile.V53),
    "pipeline-full": bench_pipeline_in_full,
}
