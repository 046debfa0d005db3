"""``rewindmq consume``: a push consumer that counts or prints the messages it receives.

With ``--json``, standard output gets one JSON object per line: ``ready``, ``progress`` every second, and
``summary`` at the end. ``--events`` adds a line for each trace point that the consumer passes, such as
``client.suspended``, and ``consumed`` with the new messages of each queue.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from rewindmq.client.cli.serialize_type_option import add_serialize_type_argument, chosen_serialize_type
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.remoting.process.options import ProcessOptions, add_process_arguments, positive_int

if TYPE_CHECKING:
    from rewindmq.client.cli.consume_tally import ConsumeTally
    from rewindmq.client.cli.output import CommandOutput
    from rewindmq.client.push.listener import (
        ConsumeConcurrentlyStatus,
        ConsumeOrderlyContext,
        ConsumeOrderlyStatus,
    )
    from rewindmq.client.push.push_consumer import PushConsumer
    from rewindmq.protocol.message import MessageExt
    from rewindmq.protocol.points import Point
    from rewindmq.protocol.remoting.runtime import Runtime

EPILOG: Final = """\
examples:
  rewindmq consume -n 127.0.0.1:9876 -t TopicTest -g demo --from first
  rewindmq consume -t TopicTest -g demo --print --count 10
  rewindmq consume -t Orders -g billing --orderly --print
  rewindmq consume -t Prices -g cache --broadcast --instance shop-7
  rewindmq consume -t Jobs -g workers --pop --profile v53 --print
  rewindmq consume -t TopicTest -g cheap --sql "price BETWEEN 1 AND 9 AND region IN ('eu', 'us')"
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options of ``consume``."""
    parser.add_argument(
        "-n", "--namesrv", metavar="ADDR", help="host:port[;host:port] (default: NAMESRV_ADDR)"
    )
    parser.add_argument("-t", "--topic", required=True, help="topic name")
    parser.add_argument("-g", "--group", required=True, help="consumer group")
    parser.add_argument(
        "--from",
        dest="start",
        default="last",
        metavar="WHERE",
        help="where a new group starts: first, last, ms since 1970, or yyyyMMddHHmmss in UTC (default: last)",
    )
    model = parser.add_mutually_exclusive_group()
    model.add_argument(
        "--model",
        choices=("clustering", "broadcasting"),
        default="clustering",
        help="broadcasting: every consumer gets all messages, and stores its offsets in ~/.rocketmq_offsets "
        "(default: clustering)",
    )
    model.add_argument(
        "--broadcast",
        dest="model",
        action="store_const",
        const="broadcasting",
        help="short for --model broadcasting",
    )
    way = parser.add_mutually_exclusive_group()
    way.add_argument(
        "--orderly",
        action="store_true",
        help="lock the queues, and consume the messages of each queue one after the other",
    )
    way.add_argument(
        "--pop",
        action="store_true",
        help="the broker assigns the queues; each message is acknowledged once it is counted or printed",
    )
    wanted = parser.add_mutually_exclusive_group()
    wanted.add_argument("--expression", default="*", help="tags separated by || (default: *)")
    wanted.add_argument("--sql", metavar="CONDITION", help="a condition on properties, such as 'price > 10'")
    parser.add_argument(
        "-c",
        "--count",
        type=positive_int,
        metavar="N",
        help="stop after N messages, at the end of a batch (default: never)",
    )
    parser.add_argument(
        "--batch", type=positive_int, default=1, metavar="N", help="messages per listener call (default: 1)"
    )
    parser.add_argument(
        "--instance",
        default="DEFAULT",
        metavar="NAME",
        help="instance name in the client id (default: DEFAULT; a unique name unless broadcasting)",
    )
    parser.add_argument(
        "--profile",
        choices=list(Profile),
        default=Profile.V49,
        help="release to imitate (default: %(default)s)",
    )
    add_serialize_type_argument(parser)
    parser.add_argument(
        "--print",
        action="store_true",
        dest="prints",
        help="print the body of each message as one line; control characters are escaped",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object per line")
    parser.add_argument(
        "--events", action="store_true", help="with --json: add trace points passed, such as client.suspended"
    )
    add_process_arguments(parser)
    parser.set_defaults(log_level="warning")


def run(arguments: argparse.Namespace) -> int:
    """Consume until stopped, and return the exit code."""
    from rewindmq.client.cli.output import make_report
    from rewindmq.protocol.remoting.process.runner import run_work

    report = make_report("received", arguments.count, as_json=arguments.json)

    def probe(point: Point, details: dict[str, Any]) -> None:
        report.event(str(point), **details)

    async def work(runtime: Runtime, stopping: asyncio.Event) -> int:
        with report:
            return await _consume(arguments, runtime, stopping, report)

    with_events = arguments.json and arguments.events
    return run_work(work, ProcessOptions.from_arguments(arguments), probe if with_events else None)


async def _consume(
    arguments: argparse.Namespace, runtime: Runtime, stopping: asyncio.Event, report: CommandOutput
) -> int:
    from rewindmq.client.cli.consume_tally import ConsumeTally
    from rewindmq.client.cli.output import FLUSH_SECONDS, PROGRESS_SECONDS, JsonReport, Ticker, route_log
    from rewindmq.protocol.remoting.process.runner import finishes_before

    tally = ConsumeTally()
    consumer = _make_consumer(arguments, runtime)
    listener = _Listener(arguments, tally, report, stopping)
    if arguments.orderly:
        consumer.register_orderly_listener(listener.consume_in_order)
    else:
        consumer.register_message_listener(listener)

    def flush() -> None:
        if arguments.events:
            for row in tally.take_fresh():
                report.event("consumed", **row)
        if isinstance(report, JsonReport):
            report.flush()

    # If the consumer cannot start, this command prints the reason itself.
    route_log(is_silent=True)
    try:
        if await finishes_before(stopping, consumer.start()):
            _report_missing_route(consumer, arguments.topic)
            route_log(is_silent=False)
            report.event("ready", topic=arguments.topic, group=arguments.group, client_id=consumer.client_id)
            tickers = (
                Ticker(runtime, PROGRESS_SECONDS, lambda: report.progress(tally.received), stopping),
                Ticker(runtime, FLUSH_SECONDS, flush, stopping),
            )
            flush()
            await stopping.wait()
            for ticker in tickers:
                ticker.stop()
    finally:
        await consumer.shutdown()
    flush()
    report.progress(tally.received)
    report.event("summary", received=tally.received, queues=tally.summary())
    report.line(f"received {tally.received} messages")
    return 0


class _Listener:
    """Counts messages, prints them if asked to, and ends the command after ``--count`` messages.

    Calls after that block until the consumer shuts down. Their messages are neither counted nor committed, so
    another consumer of the group gets them.
    """

    def __init__(
        self,
        arguments: argparse.Namespace,
        tally: ConsumeTally,
        report: CommandOutput,
        stopping: asyncio.Event,
    ) -> None:
        from rewindmq.client.push.listener import ConsumeConcurrentlyStatus, ConsumeOrderlyStatus

        self._success = ConsumeConcurrentlyStatus.CONSUME_SUCCESS
        self._success_in_order = ConsumeOrderlyStatus.SUCCESS
        self._count = arguments.count
        self._prints = arguments.prints
        self._tally = tally
        self._report = report
        self._stopping = stopping

    async def __call__(self, messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
        if self._count is not None and self._tally.received >= self._count:
            await asyncio.Event().wait()
        self._tally.note(messages)
        if self._prints:
            await self._print(messages)
        if self._count is not None and self._tally.received >= self._count:
            self._stopping.set()
        return self._success

    async def _print(self, messages: Sequence[MessageExt]) -> None:
        try:
            for message in messages:
                self._report.line(message.body.decode("utf-8", "backslashreplace"))
        except BrokenPipeError:
            # Standard output was closed. The command ends, and messages that were not printed are not
            # committed.
            self._stopping.set()
            await asyncio.Event().wait()

    async def consume_in_order(
        self, messages: Sequence[MessageExt], context: ConsumeOrderlyContext
    ) -> ConsumeOrderlyStatus:
        """Handle a batch of an orderly consumer in the same way."""
        await self(messages)
        return self._success_in_order


def _make_consumer(arguments: argparse.Namespace, runtime: Runtime) -> PushConsumer:
    from rewindmq.client.consume.selector import MessageSelector
    from rewindmq.client.push.push_consumer import PushConsumer
    from rewindmq.protocol.body.heartbeat import ConsumeFromWhere, MessageModel

    where, timestamp = ConsumeFromWhere.CONSUME_FROM_TIMESTAMP, None
    if arguments.start == "first":
        where = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
    elif arguments.start == "last":
        where = ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET
    else:
        is_date = len(arguments.start) == len("yyyyMMddHHmmss") or not arguments.start.isdecimal()
        timestamp = arguments.start if is_date else int(arguments.start)
    consumer = PushConsumer(
        arguments.group,
        arguments.namesrv,
        runtime=runtime,
        profile=arguments.profile,
        serialize_type=chosen_serialize_type(arguments),
        instance_name=arguments.instance,
        consume_from_where=where,
        consume_timestamp=timestamp,
        message_model=MessageModel[arguments.model.upper()],
        consume_message_batch_max_size=arguments.batch,
        request_mode="pop" if arguments.pop else "pull",
    )
    wanted = arguments.expression if arguments.sql is None else MessageSelector.by_sql(arguments.sql)
    consumer.subscribe(arguments.topic, wanted)
    return consumer


def _report_missing_route(consumer: PushConsumer, topic: str) -> None:
    """Print a warning if the topic does not exist: the consumer waits for its creation.

    Raises:
        RemotingError: no name server answered.
    """
    from rewindmq.protocol.code import ResponseCode
    from rewindmq.protocol.errors import RemotingError, ResponseError

    failure = consumer.instance.routes.failures.get(topic)
    if isinstance(failure, RemotingError):
        raise failure
    if isinstance(failure, ResponseError) and failure.code == ResponseCode.TOPIC_NOT_EXIST:
        text = f"topic {topic} does not exist yet; waiting for it (rewindmq admin topicList lists all topics)"
        print(f"rewindmq consume: {text}", file=sys.stderr, flush=True)
