"""The worst legal frame of each request code that the broker serves, in the order of sending.

Requests that remove entries come last.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Final

from rewindmq.broker.filter.parser import MAX_EXPRESSION_LENGTH
from rewindmq.broker.limits import (
    MAX_BATCH_ACK_ENTRIES,
    MAX_BATCH_ACKS,
    MAX_BATCH_MESSAGES,
    MAX_CONSUME_QUEUE_ENTRIES,
    MAX_FENCED_COMMITS,
    MAX_GROUPS_PER_CONNECTION,
    MAX_LISTED_CONFIGS,
    MAX_REQUEST_MODES,
    MAX_REWINDS_OF_RESET,
)
from rewindmq.broker.pop.validator import MAX_POP_MESSAGES
from rewindmq.protocol.body.batch_ack import BatchAck, BatchAckMessageRequestBody
from rewindmq.protocol.body.fenced_commit import FencedCommit
from rewindmq.protocol.body.group import SetMessageRequestModeRequestBody, SubscriptionGroupConfig
from rewindmq.protocol.body.heartbeat import CheckClientRequestBody, SubscriptionData
from rewindmq.protocol.body.lock import LockBatchRequestBody, UnlockBatchRequestBody
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.admin import (
    CreateTopicRequestHeader,
    DeleteSubscriptionGroupRequestHeader,
    DeleteTopicRequestHeader,
    GetConsumerConnectionListRequestHeader,
    GetConsumeStatsInBrokerHeader,
    GetConsumeStatsRequestHeader,
    GetProducerConnectionListRequestHeader,
    GetSubscriptionGroupConfigRequestHeader,
    GetTopicConfigRequestHeader,
    GetTopicStatsInfoRequestHeader,
    ListRewindsRequestHeader,
    QueryConsumeQueueRequestHeader,
    QueryConsumeTimeSpanRequestHeader,
    QueryTopicConsumeByWhoRequestHeader,
    ViewBrokerStatsDataRequestHeader,
)
from rewindmq.protocol.header.client import (
    GetConsumerListByGroupRequestHeader,
    GetConsumerRunningInfoRequestHeader,
    UnregisterClientRequestHeader,
)
from rewindmq.protocol.header.message import (
    ConsumeMessageDirectlyResultRequestHeader,
    ConsumerSendMsgBackRequestHeader,
    EndTransactionRequestHeader,
    QueryMessageRequestHeader,
    ViewMessageRequestHeader,
)
from rewindmq.protocol.header.offset import (
    GetEarliestMsgStoretimeRequestHeader,
    GetMaxOffsetRequestHeader,
    GetMinOffsetRequestHeader,
    QueryConsumerOffsetRequestHeader,
    SearchOffsetRequestHeader,
    UpdateConsumerOffsetRequestHeader,
)
from rewindmq.protocol.header.pop import (
    AckMessageRequestHeader,
    ChangeInvisibleTimeRequestHeader,
    NotificationRequestHeader,
    PeekMessageRequestHeader,
    PollingInfoRequestHeader,
    PopMessageRequestHeader,
)
from rewindmq.protocol.header.pull import PullMessageRequestHeader
from rewindmq.protocol.header.recall import RecallMessageRequestHeader
from rewindmq.protocol.header.reset import (
    CloneGroupOffsetRequestHeader,
    GetConsumerStatusRequestHeader,
    ResetOffsetRequestHeader,
)
from rewindmq.protocol.header.send import SendMessageRequestHeader, SendMessageRequestHeaderV2
from rewindmq.protocol.limits import MAX_PULL_MESSAGES
from rewindmq.protocol.message import Message
from rewindmq.protocol.message.batch import encode_batch
from rewindmq.protocol.message.message_id import offset_message_id
from rewindmq.protocol.message.properties import format_properties
from rewindmq.protocol.message.recall_handle import RecallHandle
from rewindmq.protocol.message.sysflag import MessageSysFlag, PullSysFlag
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.names import reply_topic
from rewindmq.protocol.pop.extra_info import build_extra_info
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.race.sim.world import EPOCH_MS
from tools.worst_frames.broker_hall import (
    AWAITED,
    BROKER,
    CROWD,
    GROUP,
    KEY,
    KEYED,
    LARGE,
    SQL,
    WIDE,
    BrokerHall,
    heartbeat,
    send_request,
)
from tools.worst_frames.frames import WorstFrame, plain, request

_TERM: Final = "a<1 OR "
_EXPRESSION: Final = _TERM * ((MAX_EXPRESSION_LENGTH - 4) // len(_TERM)) + "a<2"
_FILTERED: Final = frozenset({ResponseCode.PULL_RETRY_IMMEDIATELY})
# A limit may refuse the request, or the size of a frame its response.
_DONE_OR_REFUSED: Final = frozenset({ResponseCode.SUCCESS, ResponseCode.SYSTEM_ERROR})
_REFUSED: Final = frozenset({ResponseCode.SYSTEM_ERROR})
_SQL92: Final = "SQL92"
# The client may be in a few groups already.
_NEW_GROUPS: Final = MAX_GROUPS_PER_CONNECTION - 10
# About as much as the limits of a request's body allow.
_SUBSCRIPTIONS: Final = 2_500
_TOLERANT_ARRAYS: Final = 29_000
_LOCKED_QUEUES: Final = 4_000


def _pull(
    code: RequestCode, topic: str, expression: str, expression_type: str | None = None
) -> RemotingCommand:
    flags = int(PullSysFlag.SUBSCRIPTION)
    header = PullMessageRequestHeader(
        "Pullers", topic, 0, 0, MAX_PULL_MESSAGES, flags, 0, 0, 0, expression, expression_type
    )
    return request(code, header)


async def _pull_sql(hall: BrokerHall) -> RemotingCommand:
    return _pull(RequestCode.PULL_MESSAGE, SQL, _EXPRESSION, _SQL92)


async def _pull_other_tag(hall: BrokerHall) -> RemotingCommand:
    return _pull(RequestCode.PULL_MESSAGE, KEYED, "B")


async def _lite_pull(hall: BrokerHall) -> RemotingCommand:
    return _pull(RequestCode.LITE_PULL_MESSAGE, KEYED, "*")


async def _query_key(hall: BrokerHall) -> RemotingCommand:
    until = hall.noted["stored_ms"] - 1_500
    return request(RequestCode.QUERY_MESSAGE, QueryMessageRequestHeader(KEYED, KEY, 64, 0, until))


async def _send_large(hall: BrokerHall) -> RemotingCommand:
    properties = format_properties({"a": "1" * 16_000, "b": "1" * 16_000})
    header = SendMessageRequestHeader("Producers", LARGE, "TBW102", 4, 0, 0, 1, 0, properties)
    return request(RequestCode.SEND_MESSAGE, header, bytes(hall.sizes.message_bytes))


def _reply(code: RequestCode, header_type: type[SendMessageRequestHeader]) -> WorstFrame:
    async def make(hall: BrokerHall) -> RemotingCommand:
        properties = format_properties({"REPLY_TO_CLIENT": "first", "a": "1" * 16_000, "b": "1" * 16_000})
        topic = reply_topic(hall.context.config.broker_cluster_name)
        header = header_type("Producers", topic, "TBW102", 4, 0, 0, 1, 0, properties)
        return request(code, header, bytes(hall.sizes.message_bytes))

    return WorstFrame(code, "4 MiB with 32,000 bytes of properties, pushed and stored", make)


async def _send_to_suspended(hall: BrokerHall) -> RemotingCommand:
    await hall.suspend_pulls(hall.first, hall.sizes.suspended - 10)
    return send_request(AWAITED, 0, b"x")


async def _send_batch(hall: BrokerHall) -> RemotingCommand:
    batch = encode_batch([Message(KEYED, b"x")]) * min(10_000, hall.sizes.message_bytes // 32)
    return send_request(KEYED, 0, batch, code=RequestCode.SEND_BATCH_MESSAGE)


async def _send_batch_of_ids(hall: BrokerHall) -> RemotingCommand:
    return _largest_batch(hall, Message(KEYED, b"x", properties={"UNIQ_KEY": "A" * 32}))


async def _send_most_messages(hall: BrokerHall) -> RemotingCommand:
    return _largest_batch(hall, Message(KEYED, b"x"))


def _largest_batch(hall: BrokerHall, message: Message) -> RemotingCommand:
    batch = encode_batch([message])
    batch *= min(MAX_BATCH_MESSAGES, hall.sizes.message_bytes // len(batch))
    return send_request(KEYED, 0, batch, code=RequestCode.SEND_BATCH_MESSAGE)


async def _search_same_time(hall: BrokerHall) -> RemotingCommand:
    header = SearchOffsetRequestHeader(KEYED, 0, hall.noted["stored_ms"])
    return request(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, header)


async def _view_large(hall: BrokerHall) -> RemotingCommand:
    return request(RequestCode.VIEW_MESSAGE_BY_ID, ViewMessageRequestHeader(hall.noted["large"]))


async def _heartbeat_new_groups(hall: BrokerHall) -> RemotingCommand:
    return heartbeat("first", tuple(hall.new_groups[:_NEW_GROUPS]), (WIDE,))


async def _heartbeat_large(hall: BrokerHall) -> RemotingCommand:
    entry = {"subString": "*", "tagsSet": [], "codeSet": [], "subVersion": 1}
    subscriptions = [{**entry, "topic": f"T{number:07}"} for number in range(_SUBSCRIPTIONS)]
    consumer = {"groupName": GROUP, "subscriptionDataSet": subscriptions}
    body = json.dumps({"clientID": "first", "consumerDataSet": [consumer], "producerDataSet": []})
    return request(RequestCode.HEART_BEAT, None, body.encode())


async def _heartbeat_tolerant(hall: BrokerHall) -> RemotingCommand:
    """Only the tolerant scanner reads a key without quotes."""
    text = b'{clientID:"first","consumerDataSet":[],"producerDataSet":[],"x":['
    return request(RequestCode.HEART_BEAT, None, text + b"[]," * _TOLERANT_ARRAYS + b"]}")


async def _unregister(hall: BrokerHall) -> RemotingCommand:
    return request(RequestCode.UNREGISTER_CLIENT, UnregisterClientRequestHeader("first", None, CROWD))


async def _send_back(hall: BrokerHall) -> RemotingCommand:
    header = ConsumerSendMsgBackRequestHeader(hall.noted["large"], GROUP, 0)
    return request(RequestCode.CONSUMER_SEND_MSG_BACK, header)


async def _end_transaction(hall: BrokerHall) -> RemotingCommand:
    properties = format_properties({"TRAN_MSG": "true", "PGROUP": "Producers", "UNIQ_KEY": "u"})
    half = send_request(
        LARGE,
        0,
        bytes(hall.sizes.message_bytes),
        properties=properties,
        sys_flag=int(MessageSysFlag.TRANSACTION_PREPARED),
    )
    fields = (await hall.ask(hall.first, half)).require_success().ext
    position = int(str(fields["msgId"])[-16:], 16)
    header = EndTransactionRequestHeader("Producers", int(str(fields["queueOffset"])), position, 8, "u")
    return request(RequestCode.END_TRANSACTION, header)


def _queues(hall: BrokerHall) -> set[MessageQueue]:
    return {MessageQueue(WIDE, BROKER, queue_id) for queue_id in range(_LOCKED_QUEUES)}


async def _lock(hall: BrokerHall) -> RemotingCommand:
    return request(
        RequestCode.LOCK_BATCH_MQ, body=LockBatchRequestBody(hall.groups[1], "first", _queues(hall))
    )


async def _unlock(hall: BrokerHall) -> RemotingCommand:
    return request(
        RequestCode.UNLOCK_BATCH_MQ, body=UnlockBatchRequestBody(hall.groups[1], "first", _queues(hall))
    )


async def _check_expression(hall: BrokerHall) -> RemotingCommand:
    # Many tokens, and each ``--`` could begin a comment.
    term = "--a<1OR "
    expression = term * ((MAX_EXPRESSION_LENGTH - 4) // len(term)) + "a<2"
    subscription = SubscriptionData(WIDE, expression, expression_type=_SQL92)
    return request(RequestCode.CHECK_CLIENT_CONFIG, body=CheckClientRequestBody("first", GROUP, subscription))


async def _new_topic(hall: BrokerHall) -> RemotingCommand:
    header = CreateTopicRequestHeader("NewTopic", "TBW102", 4, 4, 6, "SINGLE_TAG")
    return request(RequestCode.UPDATE_AND_CREATE_TOPIC, header)


async def _new_group(hall: BrokerHall) -> RemotingCommand:
    return request(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=SubscriptionGroupConfig("NewGroup"))


async def _changed_topics(hall: BrokerHall) -> RemotingCommand:
    # Earlier frames have filled the table, so these change topics instead of creating them.
    changes = [{"topicName": name, "readQueueNums": 5} for name in hall.topics]
    return _listed(hall, RequestCode.UPDATE_AND_CREATE_TOPIC_LIST, "topicConfigList", changes)


async def _changed_groups(hall: BrokerHall) -> RemotingCommand:
    changes = [{"groupName": name, "retryMaxTimes": 7} for name in hall.groups]
    return _listed(hall, RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST, "groupConfigList", changes)


def _listed(
    hall: BrokerHall, code: RequestCode, key: str, changes: Sequence[Mapping[str, object]]
) -> RemotingCommand:
    return request(code, None, json.dumps({key: changes[:MAX_LISTED_CONFIGS]}).encode())


async def _ha_status(hall: BrokerHall) -> RemotingCommand:
    return request(RequestCode.GET_BROKER_HA_STATUS)


async def _reset_flush_offset(hall: BrokerHall) -> RemotingCommand:
    return request(RequestCode.RESET_MASTER_FLUSH_OFFSET)


async def _request_mode(hall: BrokerHall) -> RemotingCommand:
    for number in range(MAX_REQUEST_MODES - 1):
        hall.context.tables.request_modes.update(SetMessageRequestModeRequestBody(f"Topic{number}", GROUP))
    mode = {"topic": WIDE, "consumerGroup": GROUP, "mode": "PULL", "popShareQueueNum": 0}
    return request(RequestCode.SET_MESSAGE_REQUEST_MODE, None, json.dumps(mode).encode())


async def _assignment(hall: BrokerHall) -> RemotingCommand:
    query = {
        "topic": WIDE,
        "consumerGroup": GROUP,
        "clientId": "first",
        "strategyName": "AVG",
        "messageModel": "CLUSTERING",
    }
    return request(RequestCode.QUERY_ASSIGNMENT, None, json.dumps(query).encode())


def _pop(topic: str, maximum: int = MAX_POP_MESSAGES) -> PopMessageRequestHeader:
    return PopMessageRequestHeader(GROUP, topic, -1, maximum, 60_000, 0, 0, 0)


async def _batch_ack(hall: BrokerHall) -> RemotingCommand:
    bits = b64encode(b"\xff" * (MAX_BATCH_ACKS // 8)).decode()
    acks = [
        BatchAck(bits, GROUP, 60_000, popped, 0, "0", 0, 0, KEYED) for popped in range(MAX_BATCH_ACK_ENTRIES)
    ]
    return request(RequestCode.BATCH_ACK_MESSAGE, body=BatchAckMessageRequestBody(acks, BROKER))


_HANDLE: Final = build_extra_info(0, EPOCH_MS, 60_000, 0, KEYED, BROKER, 0, 0)


async def _recall(hall: BrokerHall) -> RemotingCommand:
    due_ms = hall.world.runtime(hall.host).clock.now_ms() + 60_000
    handle = RecallHandle(WIDE, hall.context.config.broker_name, str(due_ms), "A" * 15_000)
    return request(RequestCode.RECALL_MESSAGE, RecallMessageRequestHeader(WIDE, handle.encode(), GROUP))


async def _timer_check_point(hall: BrokerHall) -> RemotingCommand:
    return request(RequestCode.GET_TIMER_CHECK_POINT)


async def _running_info(hall: BrokerHall) -> RemotingCommand:
    return request(RequestCode.GET_CONSUMER_RUNNING_INFO, GetConsumerRunningInfoRequestHeader(GROUP, "first"))


async def _consume_directly(hall: BrokerHall) -> RemotingCommand:
    message_id = offset_message_id(bytes(8), hall.noted["large"])
    header = ConsumeMessageDirectlyResultRequestHeader(GROUP, "first", message_id)
    return request(RequestCode.CONSUME_MESSAGE_DIRECTLY, header)


async def _list_fenced(hall: BrokerHall) -> RemotingCommand:
    commit = FencedCommit(
        1, "10.0.0.9:1", hall.groups[0], hall.topics[0], 1, 1, 1, 1, 15, "c" * 200, 1, "r" * 100
    )
    for _ in range(MAX_FENCED_COMMITS):
        hall.context.offsets.fenced_commits.add(commit)
    return request(RequestCode.LIST_FENCED_COMMITS)


async def _list_rewinds(hall: BrokerHall) -> RemotingCommand:
    queues = range(MAX_REWINDS_OF_RESET)
    hall.context.offsets.rewinds.on_reset(GROUP, WIDE, dict.fromkeys(queues, 0), dict.fromkeys(queues, 1))
    return request(RequestCode.LIST_REWINDS, ListRewindsRequestHeader(GROUP, WIDE))


async def _topic_of_groups(hall: BrokerHall) -> RemotingCommand:
    return request(
        RequestCode.QUERY_TOPIC_CONSUME_BY_WHO, QueryTopicConsumeByWhoRequestHeader(hall.topics[0])
    )


def _reset(mode: ResetMode) -> WorstFrame:
    async def make(hall: BrokerHall) -> RemotingCommand:
        header = ResetOffsetRequestHeader(WIDE, GROUP, hall.noted["stored_ms"], True, reset_mode=mode)
        return request(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, header)

    return WorstFrame(
        RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, f"all queues of the widest topic, {mode}", make
    )


async def _reset_suspended(hall: BrokerHall) -> RemotingCommand:
    await hall.suspend_pulls(hall.first, hall.sizes.suspended - 10)
    header = ResetOffsetRequestHeader(AWAITED, GROUP, 0, True, reset_mode=ResetMode.FENCED)
    return request(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, header)


async def _reset_crowd(hall: BrokerHall) -> RemotingCommand:
    commit = UpdateConsumerOffsetRequestHeader(CROWD, KEYED, 0, 1)
    answer = await hall.ask(hall.first, request(RequestCode.UPDATE_CONSUMER_OFFSET, commit))
    answer.require_success()
    header = ResetOffsetRequestHeader(KEYED, CROWD, 0, True, reset_mode=ResetMode.CLASSIC)
    return request(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, header)


_WIDE_QUEUE: Final = (WIDE, 0)
FRAMES: Final[Sequence[WorstFrame]] = (
    WorstFrame(RequestCode.SEND_MESSAGE, "4 MiB with 32,000 bytes of properties", _send_large),
    WorstFrame(
        RequestCode.SEND_MESSAGE_V2, "wakes the 10,000 suspended pulls of a connection", _send_to_suspended
    ),
    _reply(RequestCode.SEND_REPLY_MESSAGE, SendMessageRequestHeader),
    _reply(RequestCode.SEND_REPLY_MESSAGE_V2, SendMessageRequestHeaderV2),
    WorstFrame(
        RequestCode.PULL_MESSAGE, "8,192 characters of SQL92 over 16,000 digits", _pull_sql, _FILTERED
    ),
    WorstFrame(RequestCode.PULL_MESSAGE, "a tag that no message has", _pull_other_tag, _FILTERED),
    WorstFrame(RequestCode.LITE_PULL_MESSAGE, "1,024 messages", _lite_pull),
    WorstFrame(RequestCode.QUERY_MESSAGE, "50,000 messages with the key, all but one too new", _query_key),
    plain(RequestCode.QUERY_CONSUMER_OFFSET, "", lambda _: QueryConsumerOffsetRequestHeader(GROUP, WIDE, 0)),
    plain(
        RequestCode.UPDATE_CONSUMER_OFFSET, "", lambda _: UpdateConsumerOffsetRequestHeader(GROUP, WIDE, 0, 1)
    ),
    plain(RequestCode.GET_ALL_TOPIC_CONFIG, "22,500 topics"),
    plain(
        RequestCode.UPDATE_BROKER_CONFIG,
        "a line of 65,532 backslashes",
        body=lambda _: b"a=" + b"\\" * 65_532,
        codes=_REFUSED,
    ),
    plain(
        RequestCode.VIEW_BROKER_STATS_DATA,
        "",
        lambda _: ViewBrokerStatsDataRequestHeader("TOPIC_PUT_NUMS", WIDE),
        codes=_DONE_OR_REFUSED,
    ),
    plain(RequestCode.GET_BROKER_CONFIG, ""),
    plain(RequestCode.GET_BROKER_RUNTIME_INFO, ""),
    WorstFrame(
        RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, "50,000 messages of one millisecond", _search_same_time
    ),
    plain(RequestCode.GET_MAX_OFFSET, "", lambda _: GetMaxOffsetRequestHeader(*_WIDE_QUEUE)),
    plain(RequestCode.GET_MIN_OFFSET, "", lambda _: GetMinOffsetRequestHeader(*_WIDE_QUEUE)),
    plain(
        RequestCode.GET_EARLIEST_MSG_STORETIME,
        "",
        lambda _: GetEarliestMsgStoretimeRequestHeader(*_WIDE_QUEUE),
    ),
    WorstFrame(RequestCode.VIEW_MESSAGE_BY_ID, "4 MiB", _view_large),
    WorstFrame(RequestCode.CONSUMER_SEND_MSG_BACK, "4 MiB", _send_back),
    WorstFrame(RequestCode.END_TRANSACTION, "commits 4 MiB", _end_transaction),
    plain(
        RequestCode.GET_CONSUMER_LIST_BY_GROUP,
        "1,000 consumers",
        lambda _: GetConsumerListByGroupRequestHeader(CROWD),
    ),
    WorstFrame(RequestCode.LOCK_BATCH_MQ, "4,000 queues", _lock),
    WorstFrame(RequestCode.UNLOCK_BATCH_MQ, "4,000 queues", _unlock),
    plain(RequestCode.GET_ALL_CONSUMER_OFFSET, "370,000 offsets"),
    plain(RequestCode.GET_ALL_DELAY_OFFSET, "18 levels"),
    WorstFrame(RequestCode.CHECK_CLIENT_CONFIG, "8,192 characters of SQL92", _check_expression),
    plain(RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, "7,800 groups"),
    plain(RequestCode.GET_TOPIC_STATS_INFO, "65,535 queues", lambda _: GetTopicStatsInfoRequestHeader(WIDE)),
    plain(
        RequestCode.GET_CONSUMER_CONNECTION_LIST,
        "1,000 consumers",
        lambda _: GetConsumerConnectionListRequestHeader(CROWD),
    ),
    plain(
        RequestCode.GET_PRODUCER_CONNECTION_LIST,
        "1,000 producers",
        lambda _: GetProducerConnectionListRequestHeader(CROWD),
    ),
    plain(
        RequestCode.GET_CONSUME_STATS, "65,535 queues", lambda _: GetConsumeStatsRequestHeader(GROUP, WIDE)
    ),
    plain(
        RequestCode.GET_BROKER_CONSUME_STATS,
        "370,000 offsets, refused at 70,000 queues",
        lambda _: GetConsumeStatsInBrokerHeader(False),
        codes=_DONE_OR_REFUSED,
    ),
    WorstFrame(RequestCode.QUERY_TOPIC_CONSUME_BY_WHO, "7,800 groups", _topic_of_groups),
    plain(
        RequestCode.QUERY_CONSUME_TIME_SPAN,
        "65,535 queues; the response is too large",
        lambda _: QueryConsumeTimeSpanRequestHeader(WIDE, GROUP),
        codes=_DONE_OR_REFUSED,
    ),
    plain(RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER, ""),
    plain(
        RequestCode.QUERY_CONSUME_QUEUE,
        "10,000 entries",
        lambda _: QueryConsumeQueueRequestHeader(KEYED, 0, 0, MAX_CONSUME_QUEUE_ENTRIES, GROUP),
    ),
    plain(RequestCode.GET_ALL_PRODUCER_INFO, "7,800 groups"),
    plain(RequestCode.GET_TOPIC_CONFIG, "", lambda _: GetTopicConfigRequestHeader(WIDE)),
    plain(
        RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG, "", lambda _: GetSubscriptionGroupConfigRequestHeader(GROUP)
    ),
    plain(
        RequestCode.UPDATE_AND_CREATE_STATIC_TOPIC,
        "refused",
        lambda _: CreateTopicRequestHeader("StaticTopic", "TBW102", 16, 16, 6, "SINGLE_TAG"),
        codes=frozenset({ResponseCode.REQUEST_CODE_NOT_SUPPORTED}),
    ),
    WorstFrame(RequestCode.LIST_FENCED_COMMITS, "1,000 commits", _list_fenced),
    WorstFrame(RequestCode.LIST_REWINDS, "65,535 queues, 1,000 of them rewound", _list_rewinds),
    WorstFrame(RequestCode.GET_CONSUMER_RUNNING_INFO, "the client answers with 16 MiB", _running_info),
    WorstFrame(RequestCode.CONSUME_MESSAGE_DIRECTLY, "4 MiB", _consume_directly),
    plain(
        RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS,
        "a client with 65,535 queues",
        lambda _: GetConsumerStatusRequestHeader(WIDE, GROUP),
    ),
    WorstFrame(RequestCode.SEND_BATCH_MESSAGE, "10,000 messages of one byte", _send_batch),
    WorstFrame(RequestCode.SEND_BATCH_MESSAGE, "56,679 messages with ids, 4 MiB", _send_batch_of_ids),
    WorstFrame(RequestCode.SEND_BATCH_MESSAGE, "182,361 messages, 4 MiB", _send_most_messages),
    WorstFrame(RequestCode.UPDATE_AND_CREATE_TOPIC, "22,500 topics", _new_topic),
    WorstFrame(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, "7,800 groups", _new_group),
    WorstFrame(RequestCode.HEART_BEAT, "490 new groups", _heartbeat_new_groups),
    plain(
        RequestCode.CLONE_GROUP_OFFSET,
        "65,535 queues",
        lambda _: CloneGroupOffsetRequestHeader(GROUP, "ClonedGroup", WIDE),
    ),
    _reset(ResetMode.CLASSIC),
    _reset(ResetMode.SERVER),
    _reset(ResetMode.FENCED),
    WorstFrame(
        RequestCode.INVOKE_BROKER_TO_RESET_OFFSET,
        "1,000 consumers to notify, classic",
        _reset_crowd,
    ),
    WorstFrame(
        RequestCode.INVOKE_BROKER_TO_RESET_OFFSET,
        "answers the 10,000 suspended pulls of a connection, fenced",
        _reset_suspended,
    ),
    WorstFrame(RequestCode.HEART_BEAT, "2,500 subscriptions", _heartbeat_large, _DONE_OR_REFUSED),
    WorstFrame(
        RequestCode.HEART_BEAT,
        "29,000 arrays that only the tolerant JSON scanner reads",
        _heartbeat_tolerant,
        _DONE_OR_REFUSED,
    ),
    WorstFrame(RequestCode.UNREGISTER_CLIENT, "of a group of 1,000", _unregister),
    plain(RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE, "1,000 queues"),
    plain(RequestCode.CLEAN_UNUSED_TOPIC, "22,500 topics"),
    plain(RequestCode.DELETE_EXPIRED_COMMITLOG, ""),
    plain(
        RequestCode.DELETE_SUBSCRIPTIONGROUP,
        "370,000 offsets",
        lambda _: DeleteSubscriptionGroupRequestHeader(GROUP, remove_offset=True),
    ),
    WorstFrame(RequestCode.SET_MESSAGE_REQUEST_MODE, "10,000 modes", _request_mode),
    WorstFrame(RequestCode.QUERY_ASSIGNMENT, "65,535 queues", _assignment),
    plain(RequestCode.POP_MESSAGE, "one message in every 65th of 65,535 queues", lambda _: _pop(WIDE)),
    plain(RequestCode.POP_MESSAGE, "32 messages", lambda _: _pop(KEYED)),
    plain(
        RequestCode.PEEK_MESSAGE,
        "one message in every 65th of 65,535 queues",
        lambda _: PeekMessageRequestHeader(GROUP, WIDE, -1, MAX_POP_MESSAGES),
    ),
    plain(
        RequestCode.NOTIFICATION,
        "65,535 queues",
        lambda _: NotificationRequestHeader(GROUP, WIDE, -1, 0, 0),
    ),
    plain(RequestCode.POLLING_INFO, "", lambda _: PollingInfoRequestHeader(GROUP, WIDE, -1)),
    WorstFrame(RequestCode.BATCH_ACK_MESSAGE, "128 messages of each of 256 POPs", _batch_ack),
    plain(
        RequestCode.CHANGE_MESSAGE_INVISIBLETIME,
        "",
        lambda _: ChangeInvisibleTimeRequestHeader(GROUP, KEYED, 0, _HANDLE, 0, 60_000),
    ),
    plain(RequestCode.ACK_MESSAGE, "", lambda _: AckMessageRequestHeader(GROUP, KEYED, 0, _HANDLE, 0)),
    WorstFrame(RequestCode.RECALL_MESSAGE, "an id of 15,000 bytes", _recall),
    WorstFrame(RequestCode.GET_TIMER_CHECK_POINT, "", _timer_check_point),
    plain(
        RequestCode.DELETE_TOPIC_IN_BROKER,
        "1,000 queues with messages",
        lambda _: DeleteTopicRequestHeader(WIDE),
    ),
    WorstFrame(RequestCode.UPDATE_AND_CREATE_TOPIC_LIST, "2,000 topics", _changed_topics),
    WorstFrame(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST, "2,000 groups", _changed_groups),
    WorstFrame(RequestCode.GET_BROKER_HA_STATUS, "", _ha_status),
    WorstFrame(RequestCode.RESET_MASTER_FLUSH_OFFSET, "", _reset_flush_offset),
)


async def closed_connection(hall: BrokerHall) -> None:
    """End the connection that has 500 groups and 10,000 suspended pulls."""
    await hall.suspend_pulls(hall.first, hall.sizes.suspended - 10)
    hall.world.meter.reset(hall.host)
    hall.first.abort()
    await hall.world.sleep(0.1)


async def timers(hall: BrokerHall) -> None:
    """Let two minutes pass at a broker with changed tables."""
    hall.context.offsets.table.commit(GROUP, WIDE, 0, 2)
    hall.context.tables.topics.renew()
    hall.world.meter.reset(hall.host)
    await hall.world.sleep(119)
