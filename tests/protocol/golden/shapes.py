"""Types of the header and the body of each request and its response."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final, NamedTuple

from rewindmq.protocol.body import (
    RemotingBody,
    acl,
    cluster,
    connection,
    group,
    ha,
    heartbeat,
    kv,
    lock,
    offset_table,
    registration,
    route,
    running_info,
    stats,
    topic_list,
)
from rewindmq.protocol.command import CommandHeader
from rewindmq.protocol.header import admin, client, message, namesrv, offset, pull, reset, send
from tests.protocol.golden.frames import GoldenFrame
from tests.protocol.golden.left_out import ON_ANY_REQUEST, UNTYPED_FIELDS


class Raw(Enum):
    """Bodies that are no structured value."""

    MESSAGE = "the body of one message"
    RECORDS = "records, one after the other"
    BATCH = "messages of a batch"
    PROPERTIES = "lines of a property file"
    COMPRESSED = "a compressed registration"


class Half(NamedTuple):
    """A request or a response. ``header`` None: no ext fields of its own; ``body`` None: no body."""

    header: type[CommandHeader] | None = None
    body: type[RemotingBody] | Raw | None = None


class Shape(NamedTuple):
    request: Half = Half()
    response: Half = Half()


_SEND_ANSWER: Final = Half(send.SendMessageResponseHeader)
_PULL: Final = Shape(Half(pull.PullMessageRequestHeader), Half(pull.PullMessageResponseHeader, Raw.RECORDS))
_TOPICS: Final = Shape(Half(), Half(None, topic_list.TopicList))

SHAPES: Final[Mapping[int, Shape]] = MappingProxyType(
    {
        10: Shape(Half(send.SendMessageRequestHeader, Raw.MESSAGE), _SEND_ANSWER),
        11: _PULL,
        12: Shape(
            Half(message.QueryMessageRequestHeader), Half(message.QueryMessageResponseHeader, Raw.RECORDS)
        ),
        14: Shape(
            Half(offset.QueryConsumerOffsetRequestHeader), Half(offset.QueryConsumerOffsetResponseHeader)
        ),
        15: Shape(Half(offset.UpdateConsumerOffsetRequestHeader)),
        17: Shape(Half(admin.CreateTopicRequestHeader)),
        18: Shape(Half(None, registration.CreateTopicListRequestBody)),
        21: Shape(Half(), Half(None, registration.TopicConfigSerializeWrapper)),
        25: Shape(Half(None, Raw.PROPERTIES)),
        26: Shape(Half(), Half(admin.GetBrokerConfigResponseHeader, Raw.PROPERTIES)),
        28: Shape(Half(), Half(None, kv.KVTable)),
        29: Shape(Half(offset.SearchOffsetRequestHeader), Half(offset.SearchOffsetResponseHeader)),
        30: Shape(Half(offset.GetMaxOffsetRequestHeader), Half(offset.GetMaxOffsetResponseHeader)),
        31: Shape(Half(offset.GetMinOffsetRequestHeader), Half(offset.GetMinOffsetResponseHeader)),
        32: Shape(
            Half(offset.GetEarliestMsgStoretimeRequestHeader),
            Half(offset.GetEarliestMsgStoretimeResponseHeader),
        ),
        33: Shape(Half(message.ViewMessageRequestHeader), Half(None, Raw.RECORDS)),
        34: Shape(Half(None, heartbeat.HeartbeatData), Half(client.HeartbeatResponseHeader)),
        35: Shape(Half(client.UnregisterClientRequestHeader)),
        36: Shape(Half(message.ConsumerSendMsgBackRequestHeader)),
        37: Shape(Half(message.EndTransactionRequestHeader)),
        38: Shape(
            Half(client.GetConsumerListByGroupRequestHeader),
            Half(None, group.GetConsumerListByGroupResponseBody),
        ),
        39: Shape(Half(message.CheckTransactionStateRequestHeader, Raw.RECORDS)),
        40: Shape(Half(client.NotifyConsumerIdsChangedRequestHeader)),
        41: Shape(Half(None, lock.LockBatchRequestBody), Half(None, lock.LockBatchResponseBody)),
        42: Shape(Half(None, lock.UnlockBatchRequestBody)),
        43: Shape(Half(), Half(None, offset_table.ConsumerOffsetSerializeWrapper)),
        45: Shape(Half(), Half(None, offset_table.DelayOffsetSerializeWrapper)),
        46: Shape(Half(None, heartbeat.CheckClientRequestBody)),
        50: Shape(Half(admin.CreateAccessConfigRequestHeader)),
        51: Shape(Half(admin.DeleteAccessConfigRequestHeader)),
        52: Shape(Half(), Half(admin.GetBrokerAclConfigResponseHeader)),
        53: Shape(Half(admin.UpdateGlobalWhiteAddrsConfigRequestHeader)),
        54: Shape(Half(), Half(None, acl.AclConfig)),
        100: Shape(Half(namesrv.PutKVConfigRequestHeader)),
        101: Shape(Half(namesrv.GetKVConfigRequestHeader), Half(namesrv.GetKVConfigResponseHeader)),
        102: Shape(Half(namesrv.DeleteKVConfigRequestHeader)),
        103: Shape(
            Half(namesrv.RegisterBrokerRequestHeader, registration.RegisterBrokerBody),
            Half(namesrv.RegisterBrokerResponseHeader, kv.KVTable),
        ),
        104: Shape(Half(namesrv.UnRegisterBrokerRequestHeader)),
        105: Shape(Half(namesrv.GetRouteInfoRequestHeader), Half(None, route.TopicRouteData)),
        106: Shape(Half(), Half(None, cluster.ClusterInfo)),
        200: Shape(Half(None, group.SubscriptionGroupConfig)),
        201: Shape(Half(), Half(None, group.SubscriptionGroupWrapper)),
        202: Shape(Half(admin.GetTopicStatsInfoRequestHeader), Half(None, stats.TopicStatsTable)),
        203: Shape(
            Half(admin.GetConsumerConnectionListRequestHeader), Half(None, connection.ConsumerConnection)
        ),
        204: Shape(
            Half(admin.GetProducerConnectionListRequestHeader), Half(None, connection.ProducerConnection)
        ),
        205: Shape(
            Half(namesrv.WipeWritePermOfBrokerRequestHeader),
            Half(namesrv.WipeWritePermOfBrokerResponseHeader),
        ),
        206: _TOPICS,
        207: Shape(Half(admin.DeleteSubscriptionGroupRequestHeader)),
        208: Shape(Half(admin.GetConsumeStatsRequestHeader), Half(None, stats.ConsumeStats)),
        215: Shape(Half(admin.DeleteTopicRequestHeader)),
        216: Shape(Half(namesrv.DeleteTopicFromNamesrvRequestHeader)),
        219: Shape(Half(namesrv.GetKVListByNamespaceRequestHeader), Half(None, kv.KVTable)),
        220: Shape(Half(reset.ResetOffsetRequestHeader, offset_table.ResetOffsetBody)),
        221: Shape(
            Half(reset.GetConsumerStatusRequestHeader), Half(None, offset_table.GetConsumerStatusBody)
        ),
        222: Shape(Half(reset.ResetOffsetRequestHeader), Half(None, offset_table.ResetOffsetBody)),
        223: Shape(
            Half(reset.GetConsumerStatusRequestHeader), Half(None, offset_table.GetConsumerStatusBody)
        ),
        224: Shape(Half(namesrv.GetTopicsByClusterRequestHeader), Half(None, topic_list.TopicList)),
        225: Shape(Half(None, group.SubscriptionGroupList)),
        300: Shape(Half(admin.QueryTopicConsumeByWhoRequestHeader), Half(None, group.GroupList)),
        303: Shape(Half(admin.QueryConsumeTimeSpanRequestHeader), Half(None, stats.QueryConsumeTimeSpanBody)),
        304: _TOPICS,
        305: _TOPICS,
        306: Shape(),
        307: Shape(
            Half(client.GetConsumerRunningInfoRequestHeader), Half(None, running_info.ConsumerRunningInfo)
        ),
        308: Shape(
            Half(admin.QueryCorrectionOffsetHeader), Half(None, offset_table.QueryCorrectionOffsetBody)
        ),
        309: Shape(
            Half(message.ConsumeMessageDirectlyResultRequestHeader, Raw.RECORDS),
            Half(None, running_info.ConsumeMessageDirectlyResult),
        ),
        310: Shape(Half(send.SendMessageRequestHeaderV2, Raw.MESSAGE), _SEND_ANSWER),
        311: _TOPICS,
        312: _TOPICS,
        313: _TOPICS,
        314: Shape(Half(reset.CloneGroupOffsetRequestHeader)),
        315: Shape(Half(admin.ViewBrokerStatsDataRequestHeader), Half(None, stats.BrokerStatsData)),
        316: Shape(),
        317: Shape(Half(admin.GetConsumeStatsInBrokerHeader), Half(None, stats.ConsumeStatsList)),
        318: Shape(Half(None, Raw.PROPERTIES)),
        319: Shape(Half(), Half(None, Raw.PROPERTIES)),
        320: Shape(Half(send.SendMessageRequestHeaderV2, Raw.BATCH), _SEND_ANSWER),
        321: Shape(
            Half(admin.QueryConsumeQueueRequestHeader), Half(None, stats.QueryConsumeQueueResponseBody)
        ),
        322: Shape(
            Half(namesrv.QueryDataVersionRequestHeader, registration.DataVersion),
            Half(namesrv.QueryDataVersionResponseHeader, registration.DataVersion),
        ),
        323: Shape(Half(message.ResumeCheckHalfMessageRequestHeader)),
        324: Shape(Half(send.SendMessageRequestHeader, Raw.MESSAGE), _SEND_ANSWER),
        325: Shape(Half(send.SendMessageRequestHeaderV2, Raw.MESSAGE), _SEND_ANSWER),
        326: Shape(Half(send.ReplyMessageRequestHeader, Raw.MESSAGE)),
        327: Shape(
            Half(namesrv.AddWritePermOfBrokerRequestHeader), Half(namesrv.AddWritePermOfBrokerResponseHeader)
        ),
        328: Shape(Half(), Half(None, connection.ProducerTableInfo)),
        329: Shape(),
        351: Shape(Half(admin.GetTopicConfigRequestHeader), Half(None, registration.TopicConfig)),
        352: Shape(
            Half(admin.GetSubscriptionGroupConfigRequestHeader), Half(None, group.SubscriptionGroupConfig)
        ),
        361: _PULL,
        907: Shape(Half(), Half(None, ha.HARuntimeInfo)),
        908: Shape(),
    }
)
# Response codes other than 0 whose responses have ext fields, by request code.
ANSWERS_WITH_FIELDS: Final[Mapping[int, frozenset[int]]] = MappingProxyType(
    {11: frozenset((19, 20, 21)), 361: frozenset((19, 20, 21)), 12: frozenset((22,))}
)


def half_of(frame: GoldenFrame) -> Half:
    """Return the types that the frame should have."""
    if frame.code not in SHAPES:
        return Half()
    shape = SHAPES[frame.code]
    if not frame.is_response:
        return shape.request
    if frame.outcome == 0:
        return shape.response
    has_fields = frame.outcome in ANSWERS_WITH_FIELDS.get(frame.code, ())
    return Half(shape.response.header if has_fields else None)


def body_of(frame: GoldenFrame) -> type[RemotingBody] | Raw | None:
    body = half_of(frame).body
    if body is registration.RegisterBrokerBody and frame.decoded().ext["compressed"] == "true":
        return Raw.COMPRESSED
    if body is offset_table.ResetOffsetBody and b"[" in frame.body:
        return offset_table.ResetOffsetBodyForC
    return body


def fields_of(frame: GoldenFrame) -> dict[str, str]:
    """The ext fields that the typed header should know."""
    header_type = half_of(frame).header
    known = header_type.__struct_encode_fields__ if header_type else ()
    extra = frozenset() if frame.is_response else ON_ANY_REQUEST.difference(known)
    return {
        name: str(text)
        for name, text in frame.decoded().ext.items()
        if name not in extra and f"{header_name(frame)}.{name}" not in UNTYPED_FIELDS
    }


def header_name(frame: GoldenFrame) -> str:
    header_type = half_of(frame).header
    half = "response" if frame.is_response else "request"
    return header_type.__name__ if header_type else f"{frame.code} {half}"
