"""``rewindmq produce``: send numbered messages to a topic.

With ``--json``, standard output gets one JSON object per line: ``ready``, ``progress`` every second, and
``summary`` at the end.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from rewindmq.client.cli.serialize_type_option import add_serialize_type_argument, chosen_serialize_type
from rewindmq.client.produce.resend import UNSENT
from rewindmq.protocol.errors import RemotingError
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.remoting.process.options import (
    ProcessOptions,
    add_process_arguments,
    positive_factor,
    positive_int,
)

if TYPE_CHECKING:
    from rewindmq.client.cli.output import CommandOutput
    from rewindmq.client.produce.producer import Producer
    from rewindmq.client.produce.send_result import SendResult
    from rewindmq.protocol.message import Message
    from rewindmq.protocol.message_queue import MessageQueue
    from rewindmq.protocol.remoting.runtime import Runtime

EPILOG: Final = """\
examples:
  rewindmq produce -n 127.0.0.1:9876 -t TopicTest 'Hello RocketMQ'
  rewindmq produce -t TopicTest --transaction unknown 'ask me later'
  rewindmq produce -t TopicTest --delay 90 'in a minute and a half'
  rewindmq produce -t TopicTest -c 10000 --body 'Hello RocketMQ {i}' --tag TagA --in-flight 64
"""

_DEFAULT_GROUP: Final = "rewindmq_produce"
_DEFAULT_BODY: Final = "Hello RocketMQ {i}"
# The exit code that shells give to a command that Ctrl-C ended.
_EXIT_INTERRUPTED: Final = 130
# How long a stopped command waits for pending responses; real seconds.
_GRACE_SECONDS: Final = 1.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options of ``produce``."""
    bodies = parser.add_mutually_exclusive_group()
    bodies.add_argument("text", nargs="?", metavar="BODY", help="the same as --body")
    parser.add_argument(
        "-n", "--namesrv", metavar="ADDR", help="host:port[;host:port] (default: NAMESRV_ADDR)"
    )
    parser.add_argument("-t", "--topic", required=True, help="topic name")
    parser.add_argument("-g", "--group", default=_DEFAULT_GROUP, help="producer group (default: %(default)s)")
    parser.add_argument(
        "-c", "--count", type=positive_int, default=1, metavar="N", help="messages to send (default: 1)"
    )
    bodies.add_argument(
        "--body",
        metavar="TEMPLATE",
        help="message body; {i} becomes the message's number (default: Hello RocketMQ {i})",
    )
    parser.add_argument(
        "--first", type=int, default=0, metavar="N", help="number of the first message (default: 0)"
    )
    parser.add_argument("--tag", help="tag of the messages")
    parser.add_argument("--keys", metavar="TEMPLATE", help="index keys; {i} becomes the message's number")
    times = parser.add_mutually_exclusive_group()
    times.add_argument(
        "--delay",
        type=int,
        metavar="SECONDS",
        help="deliver them so much later (5.x); not with --batch",
    )
    times.add_argument(
        "--deliver-at",
        metavar="TIME",
        help="deliver them at yyyy-MM-dd#HH:mm:ss:SSS or at ms since 1970 (5.x); not with --batch",
    )
    parser.add_argument("--size", type=positive_int, metavar="BYTES", help="pad bodies to this size")
    parser.add_argument(
        "--batch", type=positive_int, default=1, metavar="N", help="messages per request (default: 1)"
    )
    parser.add_argument(
        "--transaction",
        choices=("commit", "rollback", "unknown"),
        help="send half messages, and end each transaction in this state; not with --batch",
    )
    parser.add_argument(
        "--in-flight", type=positive_int, default=1, metavar="N", help="requests at a time (default: 1)"
    )
    parser.add_argument(
        "--rate", type=positive_factor, metavar="R", help="send at most R messages per second"
    )
    parser.add_argument(
        "--profile",
        choices=list(Profile),
        default=Profile.V49,
        help="release to imitate (default: %(default)s)",
    )
    add_serialize_type_argument(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object per line")
    add_process_arguments(parser)
    parser.set_defaults(log_level="warning")


def run(arguments: argparse.Namespace) -> int:
    """Send the messages, and return the exit code: 130 if the command was stopped before all were sent."""
    from rewindmq.client.cli.output import make_report
    from rewindmq.protocol.remoting.process.runner import run_work

    async def work(runtime: Runtime, stopping: asyncio.Event) -> int:
        with make_report("sent", arguments.count, as_json=arguments.json) as report:
            return await _produce(arguments, runtime, stopping, report)

    return run_work(work, ProcessOptions.from_arguments(arguments))


async def _produce(
    arguments: argparse.Namespace, runtime: Runtime, stopping: asyncio.Event, report: CommandOutput
) -> int:
    from rewindmq.client.cli.output import route_log
    from rewindmq.client.cli.produce_transaction import transaction_producer
    from rewindmq.client.produce.producer import Producer
    from rewindmq.protocol.errors import ClientError
    from rewindmq.protocol.remoting.process.runner import finishes_before

    if arguments.transaction and arguments.batch > 1:
        raise ClientError("--transaction and --batch do not go together")
    deliver_time_ms = _deliver_time(arguments)
    # A send without a route fails with the reason, so the log need not repeat it.
    route_log(is_silent=True)
    options: dict[str, Any] = {
        "runtime": runtime,
        "profile": arguments.profile,
        "serialize_type": chosen_serialize_type(arguments),
    }
    producer = (
        transaction_producer(arguments.transaction, arguments.group, arguments.namesrv, **options)
        if arguments.transaction
        else Producer(arguments.group, arguments.namesrv, **options)
    )
    async with _grace_period(stopping, runtime) as grace_over:
        run = _Run(arguments, runtime, producer, stopping, grace_over, deliver_time_ms)
        try:
            await producer.start()
            report.event("ready", topic=arguments.topic, group=arguments.group, client_id=producer.client_id)
            await _send_all(run, runtime, report, stopping)
        finally:
            # A broker that does not answer must not delay the end of the command.
            await finishes_before(grace_over, producer.shutdown())
    return 0 if run.sent == arguments.count else _EXIT_INTERRUPTED


async def _send_all(run: _Run, runtime: Runtime, report: CommandOutput, stopping: asyncio.Event) -> None:
    """Send all messages, and report progress and a summary."""
    from rewindmq.client.cli.output import PROGRESS_SECONDS, Ticker, wall_ms

    ticker = Ticker(runtime, PROGRESS_SECONDS, lambda: report.progress(run.sent), stopping)
    started = wall_ms()
    try:
        await run.finish()
    finally:
        ticker.stop()
        report.progress(run.sent)
        ended = wall_ms()
        report.event(
            "summary",
            sent=run.sent,
            unanswered=run.unanswered,
            started_at=started,
            ended_at=ended,
            queues=run.queue_table(),
        )
    unanswered = f"; no response for {run.unanswered} more, which may be stored" if run.unanswered else ""
    report.line(f"sent {run.sent} messages in {(ended - started) / 1000:.2f} s{unanswered}")


def _deliver_time(arguments: argparse.Namespace) -> int | None:
    """Return the time of ``--deliver-at``, ms; None without it.

    Raises:
        ClientError: it is no time, or batches or transactions are to be delivered later.
    """
    from rewindmq.protocol.errors import ClientError
    from rewindmq.protocol.reset_time import parse_reset_time

    option = "--delay" if arguments.deliver_at is None else "--deliver-at"
    if arguments.delay is not None or arguments.deliver_at is not None:
        other = "--transaction" if arguments.transaction else "--batch" if arguments.batch > 1 else ""
        if other:
            raise ClientError(f"{option} and {other} do not go together")
    if arguments.deliver_at is None:
        return None
    deliver_time_ms = parse_reset_time(arguments.deliver_at)
    if deliver_time_ms is None:
        raise ClientError(
            f"--deliver-at {arguments.deliver_at!r} is neither yyyy-MM-dd#HH:mm:ss:SSS nor ms since 1970"
        )
    return deliver_time_ms


@asynccontextmanager
async def _grace_period(stopping: asyncio.Event, runtime: Runtime) -> AsyncIterator[asyncio.Event]:
    """Yield an event that is set ``_GRACE_SECONDS`` after ``stopping``."""
    grace_over = asyncio.Event()

    async def watch() -> None:
        await stopping.wait()
        runtime.timers.call_timeout(_GRACE_SECONDS, grace_over.set)

    watching = asyncio.get_running_loop().create_task(watch())
    try:
        yield grace_over
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


class _Run:
    """Carries out all sends of one command. The first failed send ends the command.

    Args:
        stopping: once set, no further message is sent.
        grace_over: once set, pending sends are cancelled.
        deliver_time_ms: when the messages are to be delivered; None: at once, or after ``--delay``.

    Attributes:
        sent: number of stored messages.
        unanswered: number of messages without a readable response; brokers may have stored them.
    """

    def __init__(
        self,
        arguments: argparse.Namespace,
        runtime: Runtime,
        producer: Producer,
        stopping: asyncio.Event,
        grace_over: asyncio.Event,
        deliver_time_ms: int | None,
    ) -> None:
        from rewindmq.client.produce.transaction_producer import TransactionProducer

        self._arguments = arguments
        self._deliver_time_ms = deliver_time_ms
        self._runtime = runtime
        self._producer = producer
        self._transactions = producer if isinstance(producer, TransactionProducer) else None
        self._stopping = stopping
        self._grace_over = grace_over
        self._batches = self._make_batches()
        self._started = runtime.clock.monotonic()
        self._scheduled = 0
        self._rate_waits: set[asyncio.Event] = set()
        self._queues: dict[MessageQueue, tuple[int, int, int]] = {}
        self.sent = 0
        self.unanswered = 0

    async def finish(self) -> None:
        """Send all messages, or those until the command is stopped.

        Raises:
            RewindMQError: the error of the first failed send.
        """
        loop = asyncio.get_running_loop()
        workers = [loop.create_task(self._worker()) for _ in range(self._arguments.in_flight)]
        stop = loop.create_task(self._stop_workers(workers))
        try:
            await asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION)
            for worker in workers:
                if worker.done() and not worker.cancelled():
                    worker.result()
        finally:
            for task in (stop, *workers):
                task.cancel()
            await asyncio.gather(stop, *workers, return_exceptions=True)

    async def _stop_workers(self, workers: list[asyncio.Task[None]]) -> None:
        """When the command is stopped, wake workers that wait for the rate; later cancel pending sends."""
        await self._stopping.wait()
        for wait in self._rate_waits:
            wait.set()
        await self._grace_over.wait()
        for worker in workers:
            worker.cancel()

    def queue_table(self) -> list[dict[str, object]]:
        """Return sent messages per queue: count, first and last offset."""
        return [
            {
                "broker": queue.broker_name,
                "queue": queue.queue_id,
                "sent": count,
                "first": first,
                "last": last,
            }
            for queue, (count, first, last) in sorted(self._queues.items())
        ]

    def _make_batches(self) -> Iterator[list[Message]]:
        size = self._arguments.batch
        first = self._arguments.first
        end = first + self._arguments.count
        for start in range(first, end, size):
            yield [self._message(number) for number in range(start, min(start + size, end))]

    def _message(self, number: int) -> Message:
        from rewindmq.protocol.message import Message

        arguments = self._arguments
        given = arguments.text if arguments.body is None else arguments.body
        template = _DEFAULT_BODY if given is None else given
        body = template.replace("{i}", str(number)).encode()
        if arguments.size:
            body = body.ljust(arguments.size, b".")
        keys = arguments.keys.replace("{i}", str(number)) if arguments.keys else None
        return Message(
            arguments.topic,
            body,
            arguments.tag,
            keys,
            delay_time_sec=arguments.delay,
            deliver_time_ms=self._deliver_time_ms,
        )

    async def _worker(self) -> None:
        for batch in self._batches:
            await self._keep_rate(len(batch))
            if self._stopping.is_set():
                return
            try:
                result = await self._send(batch)
            except asyncio.CancelledError:
                self.unanswered += len(batch)
                raise
            except RemotingError as error:
                if not isinstance(error, UNSENT):
                    self.unanswered += len(batch)
                raise
            self._note(result, len(batch))

    async def _send(self, batch: list[Message]) -> SendResult:
        if self._transactions is not None:
            return (await self._transactions.send_message_in_transaction(batch[0])).send_result
        if len(batch) == 1:
            return await self._producer.send(batch[0])
        return await self._producer.send_batch(batch)

    async def _keep_rate(self, count: int) -> None:
        """Wait until the next ``count`` messages are due, or the command is stopped."""
        rate = self._arguments.rate
        if not rate:
            return
        due = self._started + self._scheduled / rate
        self._scheduled += count
        left = due - self._runtime.clock.monotonic()
        if left <= 0 or self._stopping.is_set():
            return
        wait = asyncio.Event()
        self._rate_waits.add(wait)
        timer = self._runtime.timers.call_later(left, wait.set)
        try:
            await wait.wait()
        finally:
            timer.cancel()
            self._rate_waits.discard(wait)

    def _note(self, result: SendResult, count: int) -> None:
        self.sent += count
        first = result.queue_offset
        last = first + count - 1
        known = self._queues.get(result.message_queue)
        if known is not None:
            count, first, last = known[0] + count, min(known[1], first), max(known[2], last)
        self._queues[result.message_queue] = (count, first, last)
