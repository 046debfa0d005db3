"""Producer of messages that are delivered only if a local transaction commits (docs/spec/broker.md B.14).

Source: RocketMQ 4.9.4 ``TransactionMQProducer`` and ``DefaultMQProducerImpl#sendMessageInTransaction``.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from rewindmq.client.core.application_error import must_reach_caller
from rewindmq.client.core.client_config import (
    DEFAULT_API_TIMEOUT_MS,
    DEFAULT_CALLBACK_THREADS,
    DEFAULT_INSTANCE_NAME,
)
from rewindmq.client.core.profile import ClientProfile
from rewindmq.client.produce.producer import SEND_TIMEOUT, Producer
from rewindmq.client.produce.send_result import SendResult, SendStatus
from rewindmq.client.produce.transaction import (
    COMMIT_OR_ROLLBACK,
    LocalTransactionState,
    TransactionListener,
    TransactionSendResult,
)
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.command import SerializeType
from rewindmq.protocol.errors import ClientError, RewindMQError
from rewindmq.protocol.header.message import (
    CheckTransactionStateRequestHeader,
    EndTransactionRequestHeader,
)
from rewindmq.protocol.limits import MAX_MESSAGE_BODY_BYTES
from rewindmq.protocol.message import Message, MessageExt
from rewindmq.protocol.message.message_id import parse_offset_message_id
from rewindmq.protocol.message.properties import DELAY, PGROUP, TIMERS, TRAN_MSG
from rewindmq.protocol.message.sysflag import MessageSysFlag
from rewindmq.protocol.options import refuse_unknown_options
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.remoting.runtime import Runtime

CHECK_ANSWER_TIMEOUT: Final = 3.0
# ``TransactionMQProducer.checkRequestHoldMax``.
CHECK_REQUEST_HOLD_MAX: Final = 2_000
_PREPARED: Final = int(MessageSysFlag.TRANSACTION_PREPARED)
_UNKNOW: Final = LocalTransactionState.UNKNOW

MessageT = TypeVar("MessageT", Message, MessageExt)

_log = logging.getLogger(__name__)


class TransactionProducer(Producer):
    """Sends messages that consumers get only if a local transaction commits.

    ::

        async with TransactionProducer("P", "127.0.0.1:9876", listener=Orders()) as producer:
            result = await producer.send_message_in_transaction(Message("TopicTest", b"order 1"))

    Args:
        group: the producer group; brokers check a transaction at any producer of the group.
        namesrv_addr: ``host:port`` of the name servers, separated by ``;``; None (default) takes the
            environment's ``NAMESRV_ADDR``.
        listener: runs the local transactions and knows their outcome; see ``TransactionListener``.
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
        ClientError: as ``Producer``.
    """

    @refuse_unknown_options
    def __init__(
        self,
        group: str,
        namesrv_addr: str | None = None,
        *,
        listener: TransactionListener,
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
        super().__init__(
            group,
            namesrv_addr,
            retry_times_when_send_failed=retry_times_when_send_failed,
            retry_another_broker_when_not_store_ok=retry_another_broker_when_not_store_ok,
            max_message_size=max_message_size,
            compress_msg_body_over_howmuch=compress_msg_body_over_howmuch,
            default_topic_queue_nums=default_topic_queue_nums,
            enable_msg_trace=enable_msg_trace,
            customized_trace_topic=customized_trace_topic,
            profile=profile,
            serialize_type=serialize_type,
            time_scale=time_scale,
            seed=seed,
            runtime=runtime,
            instance_name=instance_name,
            client_ip=client_ip,
            unit_name=unit_name,
            client_callback_executor_threads=client_callback_executor_threads,
            mq_client_api_timeout=mq_client_api_timeout,
        )
        self._listener = listener
        # Checks run one after another, because Java's pool for them has one thread.
        self._check_turn = asyncio.Lock()
        self._checks = 0

    async def send_message_in_transaction(
        self, message: Message, arg: Any = None, timeout: float = SEND_TIMEOUT
    ) -> TransactionSendResult:
        """Send a half message, run the local transaction, and report its state to the broker.

        The report is oneway; if it is lost, the broker asks later with CHECK_TRANSACTION_STATE (39). If the
        half message's status is not SEND_OK, because it was not flushed or replicated in time, it is rolled
        back, and the local transaction does not run.

        Args:
            message: the producer adds the properties of a half message to this object, and removes its delay
                level.
            arg: passed on to the listener.
            timeout: seconds for each try of the send.

        Raises:
            ClientError, ResponseError, RemotingError: as ``Producer.send``; the local transaction has not
                run.
        """
        message.properties.pop(DELAY, None)
        if any(name in message.properties for name in TIMERS):
            raise ClientError("a transactional message cannot have a delivery time")
        message.properties[TRAN_MSG] = "true"
        message.properties[PGROUP] = self.group
        outgoing = self._prepare(message)
        outgoing.sys_flag |= _PREPARED
        result = await self._send_in_turn(outgoing, message.topic, timeout)
        if result.status is SendStatus.SEND_OK:
            state, fault = await self._call_listener(self._listener.execute_local_transaction, message, arg)
        else:
            state, fault = LocalTransactionState.ROLLBACK_MESSAGE, None
        try:
            await self._report_end(message, result, state, fault, timeout)
        except RewindMQError as error:
            _log.warning(
                "local transaction execute %s, but end broker transaction failed: %s", state.value, error
            )
        return TransactionSendResult(result, result.msg_id, state)

    def check_transaction_state(
        self, address: str, message: MessageExt, header: CheckTransactionStateRequestHeader
    ) -> None:
        """Answer CHECK_TRANSACTION_STATE (39); checks run one by one, and are dropped while 2,000 wait."""
        if self._checks >= CHECK_REQUEST_HOLD_MAX:
            _log.warning("check of transaction %s dropped: %d checks wait", message.msg_id, self._checks)
            return
        self._checks += 1
        self.instance.spawn(self._answer_check(address, message, header))

    async def _answer_check(
        self, address: str, message: MessageExt, header: CheckTransactionStateRequestHeader
    ) -> None:
        try:
            async with self._check_turn:
                if not self.is_running:
                    return
                state, fault = await self._call_listener(self._listener.check_local_transaction, message)
            answer = EndTransactionRequestHeader(
                self.group,
                header.tran_state_table_offset,
                header.commit_log_offset,
                COMMIT_OR_ROLLBACK[state],
                message.msg_id,
                True,
                header.transaction_id,
                header.topic,
            )
            remark = f"checkLocalTransactionState Exception: {fault!r}" if fault else None
            if self._trace is not None:
                self._trace.ended(message, answer, state.value, address)
            await self._send_end(address, answer, remark, CHECK_ANSWER_TIMEOUT)
        except RewindMQError as error:
            _log.warning("outcome of transaction %s not sent: %s", message.msg_id, error)
        finally:
            self._checks -= 1

    async def _call_listener(
        self, function: Callable[..., Any], message: MessageT, *args: Any
    ) -> tuple[LocalTransactionState, BaseException | None]:
        """Return the state that the listener returns, or UNKNOW and the error if it raises."""
        try:
            answer = (
                function(message, *args)
                if inspect.iscoroutinefunction(function)
                else await self.runtime.workers.run(function, message, *args)
            )
            state = await answer if isinstance(answer, Awaitable) else answer
            if state is None:
                return _UNKNOW, None
            if not isinstance(state, LocalTransactionState):
                raise ClientError(f"the listener returned {state!r}, which is not a LocalTransactionState")
        except BaseException as error:
            if must_reach_caller(error):
                raise
            _log.exception("local transaction of %r failed", message)
            return _UNKNOW, error
        return state, None

    async def _report_end(
        self,
        message: Message,
        result: SendResult,
        state: LocalTransactionState,
        fault: BaseException | None,
        timeout: float,
    ) -> None:
        _, position = parse_offset_message_id(result.offset_msg_id)
        header = EndTransactionRequestHeader(
            self.group,
            result.queue_offset,
            position,
            COMMIT_OR_ROLLBACK[state],
            result.msg_id,
            False,
            result.msg_id,
            message.topic if self.config.profile.end_transaction_names_topic else None,
        )
        remark = f"executeLocalTransactionBranch exception: {fault!r}" if fault else None
        queue = result.message_queue
        address = await self.instance.routes.find_master_address(queue.topic, queue.broker_name)
        if self._trace is not None:
            self._trace.ended(message, header, state.value, address)
        await self._send_end(address, header, remark, timeout)

    async def _send_end(
        self, address: str, header: EndTransactionRequestHeader, remark: str | None, timeout: float
    ) -> None:
        command = self.instance.api.command(RequestCode.END_TRANSACTION, header)
        command.remark = remark
        await self.instance.remoting.invoke_oneway(address, command, timeout)
