"""Producer: sends messages (docs/spec/protocol.md 3.3, 3.4; docs/spec/broker.md B.1, B.2).

Source: RocketMQ 4.9.4 ``DefaultMQProducer`` and ``DefaultMQProducerImpl``.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from functools import partial
from threading import get_ident
from typing import Any, Final

from rewindmq.client.core.checks import require_sendable
from rewindmq.client.core.client_config import (
    DEFAULT_API_TIMEOUT_MS,
    DEFAULT_CALLBACK_THREADS,
    DEFAULT_INSTANCE_NAME,
    ClientConfig,
    make_config,
)
from rewindmq.client.core.lifecycle import RUNNING, Client
from rewindmq.client.core.profile import ClientProfile
from rewindmq.client.core.route import PublishInfo, publish_queues
from rewindmq.client.msg_trace.dispatcher import TraceDispatcher
from rewindmq.client.msg_trace.records import DEFAULT_TRACE_TOPIC
from rewindmq.client.produce.plain_sends import PlainSends
from rewindmq.client.produce.resend import BUSY_CODES, RESEND_CODES, may_resend
from rewindmq.client.produce.send_request import Outgoing, SendRequests
from rewindmq.client.produce.send_result import SendResult, SendStatus, result_of, stored_result
from rewindmq.client.produce.send_trace import SendTrace
from rewindmq.client.produce.waiting_requests import WaitingRequests
from rewindmq.protocol.body.route import TopicRouteData
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.command import RemotingCommand, SerializeType
from rewindmq.protocol.errors import ClientError, ResponseError, RewindMQError
from rewindmq.protocol.header.recall import RecallMessageRequestHeader, RecallMessageResponseHeader
from rewindmq.protocol.header.send import SendMessageResponseHeader
from rewindmq.protocol.limits import MAX_MESSAGE_BODY_BYTES
from rewindmq.protocol.message import Message, MessageExt
from rewindmq.protocol.message.arguments import text_of
from rewindmq.protocol.message.recall_handle import decode_recall_handle
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.names import DEFAULT_TOPIC
from rewindmq.protocol.options import refuse_unknown_options
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.remoting.runtime import Runtime
from rewindmq.protocol.remoting.runtime_lease import lease_runtime

SEND_TIMEOUT: Final = 3.0
REQUEST_TIMEOUT: Final = 3.0

# Picks a queue of a topic: called as selector(queues, message, argument).
QueueSelector = Callable[[Sequence[MessageQueue], Message, Any], MessageQueue]

# Prefix of the groups of trace producers. The traced group's name is truncated, so that the name stays valid.
_TRACE_GROUP_PREFIX: Final = "_INNER_TRACE_PRODUCER"
_TRACE_GROUP_CHARACTERS: Final = 80
_TRACE_INSTANCE_NAME: Final = "PID_CLIENT_INNER_TRACE_PRODUCER"
_trace_numbers = itertools.count(1)

_log = logging.getLogger(__name__)


class Producer(Client):
    """Sends messages of one producer group.

    ::

        async with Producer("P", "127.0.0.1:9876") as producer:
            result = await producer.send(Message("TopicTest", b"Hello"))

    Args:
        group: the producer group.
        namesrv_addr: ``host:port`` of the name servers, separated by ``;``; None (default) takes the
            environment's ``NAMESRV_ADDR``.
        retry_times_when_send_failed: how often a failed send is retried, on other brokers if there are any,
            at least 0; default 2.
        retry_another_broker_when_not_store_ok: also retry if a message was stored but not flushed or
            replicated in time; it may then be stored twice. Default False.
        max_message_size: bytes of a body, 1 to 4,194,304 (default).
        compress_msg_body_over_howmuch: bodies of this many bytes or more are compressed; default 4,096.
        default_topic_queue_nums: queues per broker of a topic that is created by sending to it; default 4.
        enable_msg_trace: record each send in the trace topic (docs/queries.md); default False.
        customized_trace_topic: the trace topic; None (default): ``RMQ_SYS_TRACE_TOPIC``.
        profile: the release to imitate: "v42", "v49" (default) or "v53"; or a variant of v49, "epoch" or
            "unguarded" (docs/consumer.md).
        serialize_type: serialization type of requests, "json", "rocketmq" or "msgpack"; None (default)
            negotiates.
        time_scale: factor on every scheduled wait, above 0; default 1. Use the cluster's (docs/time.md).
        seed: makes random choices repeatable; None (default): random choices differ from run to run.
        runtime: clock, timers, network and threads of a simulated world (docs/time.md), instead of
            ``time_scale`` and ``seed``.
        instance_name: clients of one process with equal names share connections and timers. "DEFAULT" (the
            default) becomes a unique name, in v42 the process id. A broadcasting consumer keeps "DEFAULT".
        client_ip: the address in the client id and in message ids; default "127.0.0.1".
        unit_name: a suffix of the client id; default "", none.
        client_callback_executor_threads: how many resets and pull callbacks may run at the same time, at
            least 1; default 4.
        mq_client_api_timeout: timeout in ms of heartbeats, route and consumer-list queries, and filter
            checks, at least 1; default 3,000.

    Raises:
        ClientError: an invalid group name, or a missing or invalid name server address.
    """

    KIND = "producer"
    DEFAULT_GROUP = "DEFAULT_PRODUCER"

    @refuse_unknown_options
    def __init__(
        self,
        group: str,
        namesrv_addr: str | None = None,
        *,
        retry_times_when_send_failed: int = 2,
        retry_another_broker_when_not_store_ok: bool = False,
        max_message_size: int = MAX_MESSAGE_BODY_BYTES,
        compress_msg_body_over_howmuch: int = 4096,
        default_topic_queue_nums: int = 4,
        enable_msg_trace: bool = False,
        customized_trace_topic: str | None = None,
        profile: Profile | ClientProfile | str = "v49",
        serialize_type: SerializeType | str | None = None,
        time_scale: float | None = None,
        seed: int | None = None,
        runtime: Runtime | None = None,
        instance_name: str = DEFAULT_INSTANCE_NAME,
        client_ip: str = "127.0.0.1",
        unit_name: str = "",
        client_callback_executor_threads: int = DEFAULT_CALLBACK_THREADS,
        mq_client_api_timeout: int = DEFAULT_API_TIMEOUT_MS,
    ) -> None:
        config = make_config(
            namesrv_addr,
            profile=profile,
            serialize_type=serialize_type,
            instance_name=instance_name,
            client_ip=client_ip,
            unit_name=unit_name,
            client_callback_executor_threads=client_callback_executor_threads,
            mq_client_api_timeout=mq_client_api_timeout,
        )
        super().__init__(group, config, lease_runtime(runtime, time_scale, seed))
        if not 0 < max_message_size <= MAX_MESSAGE_BODY_BYTES:
            raise ClientError(f"max_message_size Out of range [1, {MAX_MESSAGE_BODY_BYTES}]")
        if retry_times_when_send_failed < 0:
            raise ClientError("retry_times_when_send_failed must not be negative")
        self._tries = 1 + retry_times_when_send_failed
        self._retries_not_store_ok = retry_another_broker_when_not_store_ok
        self._max_message_size = max_message_size
        self._compress_over = compress_msg_body_over_howmuch
        self._default_topic_queue_nums = default_topic_queue_nums
        self._resend_codes = RESEND_CODES
        if self.config.profile.retry_on_busy:
            self._resend_codes |= BUSY_CODES
        # Topics in the order of their first send. The auto-create template comes first: its route makes
        # brokers known before the first send.
        self._topics: dict[str, None] = {DEFAULT_TOPIC: None}
        self._publish: dict[str, PublishInfo] = {}
        # Topics of requests whose brokers have got a heartbeat since.
        self._request_topics: set[str] = set()
        self._requests: SendRequests
        self._plain_sends: PlainSends
        self._waiting_requests: WaitingRequests
        self._trace: SendTrace | None = None
        if enable_msg_trace:
            dispatcher = make_trace_dispatcher(
                self.runtime, self.config, group, "PRODUCE", customized_trace_topic
            )
            self._trace = SendTrace(dispatcher, group, self.runtime.clock.now_ms)
        self._sends_plain = self._trace is None and config.serialize_type in (None, SerializeType.MSGPACK)

    # Sending.

    async def send(
        self, message: Message, timeout: float = SEND_TIMEOUT, queue: MessageQueue | None = None
    ) -> SendResult:
        """Send one message and wait until it is stored.

        Args:
            message: the producer sets its property UNIQ_KEY unless it is set.
            timeout: seconds for each try; a try that times out is not repeated.
            queue: the queue to send to, without retries; None takes the next queue in turn.

        Raises:
            ClientError: the message is invalid, the topic has no route, or the producer is not running.
            ResponseError: the broker refused with a code that is not retried, or the last try was refused.
            UnreadableResponseError: the broker's answer cannot be read; the message is probably stored, and
                is not sent again.
            RemotingError: no broker answered.
        """
        # ``_require_running`` without its call.
        if self._state is not RUNNING or get_ident() != self._thread or not self._loop.is_running():
            self._require_running()
        if queue is not None:
            return await self._send_to(self._requests.prepare(message), queue, timeout)
        begun = self._plain_sends.begin(message, timeout) if self._sends_plain else None
        if begun is None:
            return await self._send_in_turn(self._requests.prepare(message), message.topic, timeout)
        response, queue, msg_id, properties, body, info = begun
        tries_left = self._tries - 1
        try:
            answer = await response
            if type(answer) is SendMessageResponseHeader:
                return stored_result(answer, msg_id, queue)
            result = result_of(answer, msg_id, queue)
        except RewindMQError as error:
            if not self._tries_after(error, queue, tries_left):
                raise
        else:
            if self._is_final(result, tries_left):
                return result
        outgoing = Outgoing(body, properties, msg_id)
        return await self._send_in_turn(outgoing, queue.topic, timeout, info, tries_left, queue.broker_name)

    async def send_with_selector(
        self, message: Message, selector: QueueSelector, arg: Any = None, timeout: float = SEND_TIMEOUT
    ) -> SendResult:
        """Send to the queue that ``selector(queues, message, arg)`` picks, without retries.

        Raises:
            ClientError: as ``send``, or the selector raised or returned none of the topic's queues.
        """
        outgoing = self._prepare(message)
        queue = await self._selected(message, selector, arg)
        return await self._send_to(outgoing, queue, timeout)

    async def send_oneway(
        self, message: Message, queue: MessageQueue | None = None, timeout: float = SEND_TIMEOUT
    ) -> None:
        """Send without an answer; return when the request has been handed to the network.

        Raises:
            ClientError: as ``send``.
            RemotingError: no connection, or too many unsent requests, within ``timeout`` seconds.
        """
        outgoing = self._prepare(message)
        if queue is None:
            queue = (await self._publish_info(message.topic)).select()
        routes = self.instance.routes
        address = await routes.find_master_address(queue.topic, queue.broker_name)
        await self.instance.remoting.invoke_oneway(address, self._requests.command(outgoing, queue), timeout)

    async def send_batch(
        self,
        messages: Sequence[Message],
        timeout: float = SEND_TIMEOUT,
        queue: MessageQueue | None = None,
    ) -> SendResult:
        """Send messages of one topic in one request; they get consecutive offsets in one queue.

        Raises:
            ClientError: as ``send``; or the batch is empty, mixes topics, has a delay or a retry topic, or is
                over ``max_message_size``.
            ResponseError, RemotingError: as ``send``.
        """
        self._require_running()
        outgoing = self._requests.prepare_batch(messages)
        if queue is not None:
            return await self._send_to(outgoing, queue, timeout)
        return await self._send_in_turn(outgoing, messages[0].topic, timeout)

    async def recall(self, topic: str, recall_handle: str, timeout: float = SEND_TIMEOUT) -> str:
        """Take back a message that waits for its time (5.x), and return its unique id.

        The broker does not say whether the message was still there; a second recall succeeds, too.

        Args:
            topic: the topic to which the message was sent.
            recall_handle: from the ``SendResult``.

        Raises:
            ClientError: the topic is invalid, or it is no handle, or its broker has no address.
            ResponseError: NO_PERMISSION (16), the broker has ``recallMessageEnable=false``; ILLEGAL_OPERATION
                (604), the message's time has passed; TOPIC_NOT_EXIST (17).
            RemotingError: the broker did not answer.
        """
        self._require_running()
        require_sendable(topic)
        handle = decode_recall_handle(text_of("recall_handle", recall_handle))
        if handle is None:
            raise ClientError("recall handle is invalid: pass the recall_handle of a SendResult")
        address = await self.instance.routes.find_master_address(topic, handle.broker_name)
        header = RecallMessageRequestHeader(topic, recall_handle, self.group)
        request = RemotingCommand(
            RequestCode.RECALL_MESSAGE, header, version=self.config.profile.announced_version
        )
        response = await self.instance.remoting.invoke(address, request, timeout)
        response.require_success()
        return response.decode_header(RecallMessageResponseHeader).msg_id

    # Requests and replies.

    async def request(
        self, message: Message, timeout: float = REQUEST_TIMEOUT, queue: MessageQueue | None = None
    ) -> MessageExt:
        """Send a request and return the reply that a consumer sends; see ``create_reply_message``.

        Args:
            message: the producer sets its properties CORRELATION_ID, REPLY_TO_CLIENT and TTL, and UNIQ_KEY
                as ``send`` does.
            timeout: seconds until the reply must have arrived, above 0; includes the send and its retries.
            queue: as in ``send``.

        Raises:
            ReplyTimeoutError: the request was sent, but no reply arrived in time.
            ClientError: as ``send``; or the producer shuts down.
            ResponseError, RemotingError: as ``send``. After a RequestTimeoutError that is not a
                ReplyTimeoutError, the request may be stored.
            TooManyRequestsError: 65,535 requests wait already.
        """
        outgoing = self._prepare_request(message, timeout)
        if queue is not None:
            send = partial(self._send_to, outgoing, queue, timeout)
        else:
            send = partial(self._send_in_turn, outgoing, message.topic, timeout)
        return await self._await_reply(message, timeout, send)

    async def request_with_selector(
        self, message: Message, selector: QueueSelector, arg: Any = None, timeout: float = REQUEST_TIMEOUT
    ) -> MessageExt:
        """Like ``request``, to the queue that ``selector(queues, message, arg)`` picks, without retries.

        Raises:
            ClientError: as ``send_with_selector``; or the producer shuts down.
            ReplyTimeoutError, ResponseError, RemotingError: as ``request``.
        """
        outgoing = self._prepare_request(message, timeout)

        async def send() -> SendResult:
            queue = await self._selected(message, selector, arg)
            return await self._send_to(outgoing, queue, timeout)

        return await self._await_reply(message, timeout, send)

    def _prepare_request(self, message: Message, timeout: float) -> Outgoing:
        self._require_running()
        self._waiting_requests.mark(message, self.client_id, timeout)
        return self._requests.prepare(message)

    async def _await_reply(
        self, message: Message, timeout: float, send: Callable[[], Awaitable[SendResult]]
    ) -> MessageExt:
        topic = message.topic

        async def send_request() -> None:
            # Replies come through the brokers that know this client: it sends heartbeats to those of the
            # topic's route (``DefaultMQProducerImpl#prepareSendRequest``). Unlike RocketMQ's client, the next
            # request sends them again if one failed.
            if topic not in self._request_topics:
                await self._publish_info(topic)
                if await self.instance.send_heartbeats():
                    self._request_topics.add(topic)
            await send()

        return await self._waiting_requests.reply_to(message, timeout, send_request)

    async def fetch_publish_message_queues(self, topic: str) -> list[MessageQueue]:
        """Return the queues of a topic that can be sent to.

        Raises:
            ClientError: the topic has no route, or the producer is not running.
        """
        self._require_running()
        return list((await self._publish_info(topic)).queues)

    def _prepare(self, message: Message) -> Outgoing:
        self._require_running()
        return self._requests.prepare(message)

    async def _send_in_turn(
        self,
        outgoing: Outgoing,
        topic: str,
        timeout: float,
        info: PublishInfo | None = None,
        tries: int = 0,
        failed: str | None = None,
    ) -> SendResult:
        """Try the queues in turn.

        Args:
            info: the queues, if a first try was made before.
            tries: how many tries are left then.
            failed: the broker of that first try.
        """
        if info is None:
            info = self._publish.get(topic) or await self._publish_info(topic)
            tries = self._tries
        for tries_left in range(tries - 1, -1, -1):
            queue = info.select(failed)
            failed = queue.broker_name
            try:
                result = await self._send_to(outgoing, queue, timeout)
            except RewindMQError as error:
                if not self._tries_after(error, queue, tries_left):
                    raise
                continue
            if self._is_final(result, tries_left):
                return result
        raise AssertionError("the last try returns or raises")

    def _tries_after(self, error: RewindMQError, queue: MessageQueue, tries_left: int) -> bool:
        """Return whether another try follows an error; log the error then."""
        if not tries_left or not may_resend(error, self._resend_codes):
            return False
        _log.warning("sendKernelImpl exception, resend at once, %s: %s", queue, error)
        return True

    def _is_final(self, result: SendResult, tries_left: int) -> bool:
        return result.status is SendStatus.SEND_OK or not (self._retries_not_store_ok and tries_left)

    async def _send_to(self, outgoing: Outgoing, queue: MessageQueue, timeout: float) -> SendResult:
        """Try one queue once."""
        instance = self.instance
        address = instance.routes.master_address(queue.broker_name)
        if address is None:
            address = await instance.routes.find_master_address(queue.topic, queue.broker_name)
        trace = self._trace
        began = 0 if trace is None else trace.now_ms()
        response = await instance.remoting.invoke(address, self._requests.command(outgoing, queue), timeout)
        result = result_of(response, outgoing.msg_id, queue)
        if trace is not None:
            trace.sent(outgoing, address, result, began)
        return result

    # Queues.

    async def _selected(self, message: Message, selector: QueueSelector, arg: Any) -> MessageQueue:
        queues = (await self._publish_info(message.topic)).queues
        try:
            queue = selector(queues, message, arg)
        except Exception as error:
            raise ClientError(f"select message queue threw exception: {error!r}") from error
        if queue not in queues:
            raise ClientError("select message queue return null")
        return queue

    async def _publish_info(self, topic: str) -> PublishInfo:
        """Return the topic's queues; an unknown topic gets those of the auto-create template.

        Raises:
            ClientError: no route; the text includes the cause if no name server answered.
        """
        routes = self.instance.routes
        info = self._publish.get(topic)
        if info is None:
            self._topics[topic] = None
            if not await routes.refresh(topic):
                await routes.refresh(topic, self._default_topic_queue_nums)
            info = self._publish.get(topic)
        if info is not None:
            return info
        failure = routes.failures.get(topic)
        if failure is None or isinstance(failure, ResponseError):
            raise ClientError(f"No route info of this topic: {topic}")
        raise ClientError(f"No route info of this topic: {topic} ({failure})")

    # Lifecycle.

    async def _start(self) -> None:
        instance = self.instance
        self._requests = SendRequests(
            instance,
            self.group,
            max_message_size=self._max_message_size,
            compress_over=self._compress_over,
            default_topic_queue_nums=self._default_topic_queue_nums,
        )
        plain_bytes = min(self._max_message_size, self._compress_over - 1)
        self._plain_sends = PlainSends(instance, self._requests, self._publish, plain_bytes)
        self._waiting_requests = WaitingRequests(instance.replies, self.runtime)
        instance.register_producer(self)
        await instance.start()

    async def _started(self) -> None:
        if self._trace is not None:
            await self._trace.dispatcher.start()
        await self.instance.send_heartbeats()

    async def _stop(self) -> None:
        self._waiting_requests.close()
        if self._trace is not None:
            await self._trace.dispatcher.shutdown()
        await self.instance.unregister_producer(self.group)

    def _cancel_work(self) -> None:
        self._waiting_requests.close()
        if self._trace is not None:
            self._trace.dispatcher.abort()

    # Called by the instance (``ClientInner``).

    def topics(self) -> Collection[str]:
        """Return the topics that were sent to, and the auto-create template."""
        return self._topics

    def route_changed(self, topic: str, route: TopicRouteData) -> None:
        """Update the queues of a topic that was sent to."""
        if topic not in self._topics:
            return
        queues = publish_queues(topic, route)
        self._plain_sends.forget(topic)
        info = self._publish.get(topic)
        if not queues:
            self._publish.pop(topic, None)
        elif info is None:
            self._publish[topic] = PublishInfo(queues, self.runtime.random.getrandbits(16))
        else:
            info.queues = queues


def make_trace_dispatcher(
    runtime: Runtime, host: ClientConfig, group: str, kind: str, topic: str | None
) -> TraceDispatcher:
    """Create a dispatcher of trace records, with a producer of its own, for one producer or consumer.

    Args:
        host: the configuration of the traced client, which the trace producer shares.
        group: the group of the traced client.
        kind: PRODUCE or CONSUME.
        topic: the trace topic; None takes RocketMQ's default.
    """
    namesrv = ";".join(host.namesrv_addrs)
    number = next(_trace_numbers)
    producer = Producer(
        f"{_TRACE_GROUP_PREFIX}-{group[:_TRACE_GROUP_CHARACTERS]}-{kind}-{number}",
        namesrv,
        runtime=runtime,
        profile=host.profile,
        serialize_type=host.serialize_type,
        client_ip=host.client_ip,
        unit_name=host.unit_name,
        instance_name=f"{_TRACE_INSTANCE_NAME}_{namesrv}",
    )
    return TraceDispatcher(runtime, producer, topic or DEFAULT_TRACE_TOPIC)
