"""Fields of real frames that typed headers and bodies omit, and fields that no frame has; with reasons."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

# Ext fields that may ride on any request (docs/spec/protocol.md 3.1).
ON_ANY_REQUEST: Final = frozenset(("AccessKey", "Signature", "ReqT", "bname", "ns", "nsd", "oway", "lo"))
_PAGES: Final = "5.x asks for long tables in pages; who does not know pages sends everything"
_FLAGS: Final = "5.x tells a consumer the flags of topic and group, which it does not use"
# Fields that this project's typed headers leave out: header class, or code where there is none, and field.
UNTYPED_FIELDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "QueryMessageRequestHeader.indexType": "5.x has several indexes; K, keys, is the only one here",
        "21 request.topicSeq": _PAGES,
        "21 request.maxTopicNum": _PAGES,
        "21 request.dataVersion": _PAGES,
        "21 response.totalTopicNum": _PAGES,
        "201 request.groupSeq": _PAGES,
        "201 request.maxGroupNum": _PAGES,
        "201 request.dataVersion": _PAGES,
        "201 response.totalGroupNum": _PAGES,
        "908 request.masterFlushOffset": "a master ignores it, and a slave refuses the request",
        "ConsumeMessageDirectlyResultRequestHeader.topicSysFlag": _FLAGS,
        "ConsumeMessageDirectlyResultRequestHeader.groupSysFlag": _FLAGS,
    }
)
_STATIC: Final = "5.x's static topics"
_POP: Final = "5.x's pop consumption"
_GROUPS: Final = "5.x's settings of a group, for consumption by pop and proxy"
# Fields that this project's typed bodies omit.
UNTYPED_MEMBERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "ConsumeStatsList.totalInflightDiff": _POP,
        "ConsumerOffsetSerializeWrapper.dataVersion": "5.x's slaves compare it before they take the table",
        "ConsumerOffsetSerializeWrapper.groupTopicMap": "5.x's topics of a group, which the table tells, too",
        "ConsumerOffsetSerializeWrapper.pullOffsetTable": "5.x's positions of pulls beside those committed",
        "ConsumerRunningInfo.mqPopTable": _POP,
        "ConsumerRunningInfo.userConsumerInfo": "5.x's free texts of an application",
        "DelayOffsetSerializeWrapper.dataVersion": "5.x's slaves compare it before they take the table",
        "SubscriptionGroupConfig.attributes": _GROUPS,
        "SubscriptionGroupConfig.consumeMessageOrderly": _GROUPS,
        "SubscriptionGroupConfig.consumeTimeoutMinute": _GROUPS,
        "SubscriptionGroupConfig.groupRetryPolicy": _GROUPS,
        "SubscriptionGroupConfig.groupSysFlag": _GROUPS,
        "SubscriptionGroupWrapper.forbiddenTable": "5.x's groups that may not read a topic",
        "TopicConfigSerializeWrapper.mappingDataVersion": _STATIC,
        "TopicConfigSerializeWrapper.topicQueueMappingDetailMap": _STATIC,
        "TopicConfigSerializeWrapper.topicQueueMappingInfoMap": _STATIC,
        "TopicStatsTable.topicPutTps": "5.x's rate of a topic",
    }
)

# Requests that no real peer can be made to send, or not in this serialization type; each with the reason.
V42: Final = "the shape that 4.2.0's name server writes; frames are recorded from newer releases"
OWN: Final = "this project's own"
_STATIC_CLIENT: Final = "no recorded client asks for a static topic"
_LATE: Final = "tests/interop/test_mqadmin.py has real frames of it; none are recorded yet"
_POP_TESTS: Final = "tests/broker/pop/golden_answers.json has the real broker's answers"
_ASSIGNED: Final = "tests/broker/handlers/test_query_assignment.py has the answers of a running 5.5.1"
_TIMERS: Final = (
    "the Java client 5.5.0 got the same codes and remarks at a 5.5.1 broker; none are recorded yet"
)
NOT_RECORDED_CODES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "370 request": _TIMERS,
        "370 response": _TIMERS,
        "400 request": _ASSIGNED,
        "400 response": _ASSIGNED,
        "401 request": _LATE,
        "401 response": _LATE,
        "190001 request": OWN,
        "190001 response": OWN,
        "190002 request": OWN,
        "190002 response": OWN,
        "190003 request": OWN,
        "190003 response": OWN,
        "513 request": _STATIC_CLIENT,
        "513 response": _STATIC_CLIENT,
        **{
            f"{code} {half}": _POP_TESTS
            for code in (200050, 200051, 200052, 200053, 200054, 200055, 200151)
            for half in ("request", "response")
        },
    }
)
NOT_RECORDED_CLASSES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "AckMessageRequestHeader": _POP_TESTS,
        "BatchAck": _POP_TESTS,
        "BatchAckMessageRequestBody": _POP_TESTS,
        "ChangeInvisibleTimeRequestHeader": _POP_TESTS,
        "ChangeInvisibleTimeResponseHeader": _POP_TESTS,
        "NotificationRequestHeader": _POP_TESTS,
        "NotificationResponseHeader": _POP_TESTS,
        "PeekMessageRequestHeader": _POP_TESTS,
        "PollingInfoRequestHeader": _POP_TESTS,
        "PollingInfoResponseHeader": _POP_TESTS,
        "PopMessageRequestHeader": _POP_TESTS,
        "PopMessageResponseHeader": _POP_TESTS,
        "MessageQueueAssignment": _ASSIGNED,
        "QueryAssignmentRequestBody": _ASSIGNED,
        "QueryAssignmentResponseBody": _ASSIGNED,
        "SetMessageRequestModeRequestBody": _LATE,
        "RecallMessageRequestHeader": _TIMERS,
        "RecallMessageResponseHeader": _TIMERS,
        "FencedCommit": OWN,
        "FencedCommitList": OWN,
        "InvokeBrokerToResetOffsetResponseHeader": OWN,
        "ListFencedCommitsRequestHeader": OWN,
        "ListRewindsRequestHeader": OWN,
        "NotifyQueueResetRequestHeader": OWN,
        "OffsetFencedResponseHeader": OWN,
        "OldQueueData": V42,
        "OldTopicRouteData": V42,
        "QueueRewind": OWN,
        "Rewind": OWN,
        "RewindList": OWN,
        "PullRun": OWN,
    }
)
