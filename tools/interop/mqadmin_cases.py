"""The mqadmin commands that the suite compares, and where their output may differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tools.interop.mqadmin_state import (
    CLONED,
    DOOMED,
    DOOMED_GROUP,
    HALF,
    IDLE,
    LIVE,
    LOOK,
    NO_OFFSETS,
    NO_RETRY_TOPIC,
    OFFLINE,
    PRODUCERS,
    QUEUE,
    RESET,
    RESET_HALF,
    RESET_LIVE,
    RESET_NO_OFFSETS,
    RESET_OFFLINE,
    SENT,
    SENT_TO,
    SKIP,
    TRACED,
)

V4: Final = "4.9.8"
V5: Final = "5.5.0"
# 5.5.0 again, with a RocketMQ broker that leaves a reset to the consumers.
V5_CONSUMERS: Final = "5.5.0 resets by consumers"
_BOTH: Final = (V4, V5)

# System topics that one broker creates at its start, and another broker when it first needs them, or never.
_SYSTEM_TOPICS: Final = (
    r"\b(RMQ_SYS_TRANS_\w+|RMQ_SYS_ROCKSDB\w+|rmq_sys_\w+|CHECKPOINT_TOPIC|TRANS_CHECK_MAX_TIME_TOPIC)\b",
)
# Lines that are left out: RewindMQ's own keys; a key with a path; delay levels that may not have delivered
# yet; the intervals, which RocketMQ does not write in its first minute; a name that RewindMQ writes in both
# spellings (getTransferedTps). Release 5.5 has no brokerVersion.
_NOT_SHOWN: Final = (
    r"usage[A-Z]|eventLoop|commitLogDiskRatio_|scheduleMessageOffset_|putMessageDistributeTime",
    r"getTransferr?edTps|brokerVersion ",
)
# Shown after the consumer has learned of its retry topic and has committed: up to a minute after its start.
_RETRY_QUEUE: Final = ("^%RETRY%",)
# The master's address, and the end of its log.
_OF_MASTER: Final = ("^#Master",)
_LOCAL: Final = "the command reads local files and asks no server"


@dataclass(frozen=True)
class Case:
    """One command.

    Attributes:
        line: the command as typed, with the names of ``State.names`` in braces.
        matches: the releases it is run with.
        then: a command that shows its effect.
        ends_route: whether it removes a topic's route.
        only_shape, is_unordered, ignored: see ``comparable``.
        why: explains for the page what an equal output does not show.
    """

    line: str
    matches: tuple[str, ...] = _BOTH
    then: str = ""
    ends_route: bool = False
    only_shape: bool = False
    is_unordered: bool = False
    ignored: tuple[str, ...] = ()
    why: str = ""


def chosen_at(place: int, matches: tuple[str, ...]) -> str:
    """Return the release at which CI runs a case; the cases that both releases have alternate.

    Args:
        place: the case's number in its list.
        matches: the releases it can be run with; CI never runs ``V5_CONSUMERS``.
    """
    releases = [match for match in matches if match != V5_CONSUMERS]
    return releases[place % len(releases)]


LOOKING: Final = (
    Case(f"topicStatus -t {LOOK}"),
    Case("topicStatus -t nix"),
    Case(f"topicStatus -t {IDLE}"),
    Case(f"topicRoute -t {LOOK}"),
    Case(f"topicRoute -t {LOOK} -l"),
    Case("topicRoute -t nix"),
    Case(f"topicClusterList -t {LOOK}"),
    Case("topicList", is_unordered=True, ignored=_SYSTEM_TOPICS),
    Case("topicList -c", is_unordered=True, ignored=_SYSTEM_TOPICS),
    # Versions and rates differ.
    Case("clusterList", only_shape=True),
    Case("clusterList -m", only_shape=True),
    Case("brokerStatus -b {broker}", only_shape=True, ignored=_NOT_SHOWN),
    Case("brokerStatus -c DefaultCluster", only_shape=True, ignored=_NOT_SHOWN),
    Case("consumerProgress", is_unordered=True),
    *(
        Case(f"consumerProgress -g {group}", ignored=_RETRY_QUEUE)
        for group in (LIVE, OFFLINE, HALF, NO_OFFSETS, NO_RETRY_TOPIC, "nix")
    ),
    Case(f"consumerProgress -g {LIVE} -s true", ignored=_RETRY_QUEUE),
    Case(f"consumerProgress -g {LIVE} -t {LOOK}", matches=(V5,)),
    Case(f"consumerConnection -g {LIVE}"),
    Case(f"consumerConnection -g {LIVE} -b {{broker}}"),
    Case(f"consumerConnection -g {OFFLINE}"),
    Case("consumerConnection -g nix"),
    Case(f"producerConnection -g {PRODUCERS} -t {LOOK}"),
    Case(f"producerConnection -g nix -t {LOOK}"),
    Case("producer -b {broker}", is_unordered=True),
    Case(f"consumerStatus -g {LIVE}"),
    Case(f"consumerStatus -g {LIVE} -s"),
    Case(f"consumerStatus -g {LIVE} -i {{client}}", only_shape=True, ignored=_RETRY_QUEUE),
    Case(f"consumerStatus -g {LIVE} -i 127.0.0.1@nobody"),
    Case(f"consumerStatus -g {OFFLINE}"),
    Case(f"queryMsgByOffset -t {LOOK} -b broker-a -i 0 -o 1", is_unordered=True),
    Case(f"queryMsgByOffset -t {LOOK} -b broker-x -i 0 -o 1"),
    Case(f"queryMsgByKey -t {LOOK} -k key-1"),
    Case(f"queryMsgByKey -t {LOOK} -k nix"),
    Case(f"queryMsgByUniqueKey -t {LOOK} -i {{id}}", is_unordered=True),
    # The tool of 4.9.8 takes 24 s to find nothing, also at RocketMQ's broker.
    Case(f"queryMsgByUniqueKey -t {LOOK} -i 7F000001000000000000000000000000", matches=(V5,)),
    Case("queryMsgById -i {offset_id}", matches=(V4,), is_unordered=True),
    Case(f"queryMsgById -i {{offset_id}} -t {LOOK}", matches=(V5,), is_unordered=True),
    Case(f"queryMsgById -i {{id}} -t {LOOK}", matches=(V5,), is_unordered=True),
    Case("queryMsgTraceById -i {traced}", only_shape=True),
    Case(f"queryCq -t {LOOK} -q 0 -i 0 -c 2"),
    Case(f"queryCq -t {LOOK} -q 0 -i 1 -c 9 -b {{broker}} -g {LIVE}"),
    Case(f"queryCq -t {LOOK} -q 0 -i 0 -c 1 -b {{broker}} -g {HALF}"),
    Case(f"queryCq -t {LOOK} -q 9 -i 0 -c 1 -b {{broker}}"),
    Case(f"printMsg -t {LOOK}", is_unordered=True),
    Case(f"consumeMessage -t {LOOK}", is_unordered=True),
    Case(f"consumeMessage -t {LOOK} -b broker-a -i 1 -o 1 -c 2"),
    Case(f"getConsumerConfig -g {OFFLINE}"),
    Case(f"allocateMQ -t {LOOK} -i 127.0.0.1,127.0.0.2"),
    Case("brokerConsumeStats -b {broker}", is_unordered=True),
    Case(f"printMsg -t {TRACED} -s TagA"),
    # The figures of a statistic change every ten seconds.
    Case("statsAll", only_shape=True, is_unordered=True, ignored=_SYSTEM_TOPICS),
    Case(f"statsAll -t {LOOK}", only_shape=True, is_unordered=True),
    Case(f"statsAll -a -t {IDLE}"),
    Case("statsAll -t nix"),
    Case(f"printMsgByQueue -t {LOOK} -a broker-a -i 1 -p true -d true -f true"),
    Case("exportMetadata -c DefaultCluster -f export"),
    Case("exportMetadata -b {broker} -t -f export"),
    Case("exportMetadata -b {broker} -g -f export"),
    Case("exportConfigs -c DefaultCluster -f export"),
    Case("exportMetrics -c DefaultCluster -f export"),
    Case("haStatus -b {broker}", matches=(V5,), ignored=_OF_MASTER),
    Case("haStatus -c DefaultCluster", matches=(V5,), ignored=_OF_MASTER),
    Case("dumpCompactionLog -f nix", matches=(V5,), why=_LOCAL),
    Case("exportMetadataInRocksDB -p nix -t topics", matches=(V5,), why=_LOCAL),
)

CHANGING: Final = (
    Case("updateTopic -b {broker} -t mq-made-1 -r 4 -w 6", then="topicRoute -t mq-made-1 -l"),
    Case("updateTopic -c DefaultCluster -t mq-made-2 -r 2 -w 2 -p 4", then="topicRoute -t mq-made-2 -l"),
    Case("updateTopicList -b {broker} -f topics.json", matches=(V5,), then="topicRoute -t mq-listed -l"),
    Case("updateTopicList -c DefaultCluster -f more-topics.json", (V5,), then="topicRoute -t mq-listed-2 -l"),
    Case(
        "updateTopicList -b {broker} -f bad-topics.json",
        matches=(V5,),
        then="topicRoute -t mq-not-listed",
        ends_route=True,
        # The remark of 5.5.0 names the topic, that of 5.3.3 does not.
        ignored=("contains illegal characters",),
    ),
    Case("updateTopicList -b {broker} -f bad-attribute.json", matches=(V5,)),
    Case("updateTopic -b {broker} -t TBW102"),
    Case("updateTopic -b {broker} -t bad*name", matches=(V4,)),
    Case(f"updateTopicPerm -b {{broker}} -t {SENT} -p 6"),
    Case("updateSubGroup -b {broker} -g mq-made-1", then="getConsumerConfig -g mq-made-1"),
    Case(
        "updateSubGroup -c DefaultCluster -g mq-made-2 -r 3 -s true -m true -d true",
        then="getConsumerConfig -g mq-made-2",
    ),
    Case(
        "updateSubGroupList -b {broker} -f groups.json",
        matches=(V5,),
        then="getConsumerConfig -g mq-listed",
    ),
    Case("resetMasterFlushOffset -b {broker} -o 0", matches=(V5,)),
    Case(f"setConsumeMode -b {{broker}} -t {LOOK} -g {OFFLINE} -m PULL", matches=(V5,)),
    Case(f"setConsumeMode -b {{broker}} -t %RETRY%{OFFLINE} -g {OFFLINE} -m PULL", matches=(V5,)),
    Case(f"deleteTopic -c DefaultCluster -t {DOOMED}", then=f"topicRoute -t {DOOMED}", ends_route=True),
    Case(f"deleteSubGroup -b {{broker}} -g {DOOMED_GROUP} -r true"),
    Case(
        f"cloneGroupOffset -s {OFFLINE} -d {CLONED} -t {LOOK} -o false", then=f"consumerProgress -g {CLONED}"
    ),
    Case(f"cloneGroupOffset -s nix -d {CLONED} -t {LOOK} -o false"),
    Case(f"sendMessage -t {SENT} -p hello", only_shape=True),
    Case(
        f"sendMessage -t {SENT_TO} -p hello -b broker-a -i 3 -k from-tool -c TagT",
        then=f"queryMsgByKey -t {SENT_TO} -k from-tool",
    ),
    Case(
        "sendMessage -t mq-made-by-sending -p hello",
        only_shape=True,
        then="topicRoute -t mq-made-by-sending -l",
    ),
    Case(f"checkMsgSendRT -t {SENT} -a 3 -s 16", only_shape=True),
    Case("updateKvConfig -s space -k key -v value"),
    Case("deleteKvConfig -s space -k key"),
    Case("updateBrokerConfig -b {broker} -k autoCreateTopicEnable -v true"),
    Case("updateOrderConf -t mq-look -m put -v broker-a:4", then="updateOrderConf -t mq-look -m get"),
    Case("wipeWritePerm -b broker-x"),
    Case("addWritePerm -b broker-x"),
    Case("sendMsgStatus -b broker-a -c 2", only_shape=True),
    Case("updateNamesrvConfig -k orderMessageEnable -v true"),
    Case("deleteExpiredCommitLog -b {broker}"),
    Case("deleteExpiredCommitLog -c DefaultCluster"),
    Case("cleanExpiredCQ -b {broker}"),
    Case("cleanUnusedTopic -b {broker}"),
)

_RESETS: Final = (V4, V5, V5_CONSUMERS)

RESETTING: Final = (
    Case(f"resetOffsetByTime -g {RESET_OFFLINE} -t {RESET} -s -1", _RESETS),
    Case(f"resetOffsetByTime -g {RESET_OFFLINE} -t {RESET} -s 0", _RESETS),
    Case(f"resetOffsetByTime -g {RESET_OFFLINE} -t {RESET} -s 2020-01-01#00:00:00:000", _RESETS),
    Case(f"resetOffsetByTime -g {RESET_OFFLINE} -t nix -s 0", _RESETS),
    Case(f"resetOffsetByTime -g {RESET_OFFLINE} -t {RESET} -s rubbish", _RESETS),
    Case(f"resetOffsetByTime -g {RESET_HALF} -t {RESET} -s 0", _RESETS),
    Case(f"resetOffsetByTime -g {RESET_NO_OFFSETS} -t {RESET} -s 0", _RESETS),
    Case(f"resetOffsetByTime -g {RESET_LIVE} -t {RESET} -s 0", _RESETS),
    Case(f"resetOffsetByTime -g {RESET_LIVE} -t {RESET} -s 0 -f false", _RESETS),
    Case(f"resetOffsetByTime -g {RESET_LIVE} -t {RESET} -s now", _RESETS),
    Case(
        f"skipAccumulatedMessage -g {SKIP}-group -t {SKIP}", _RESETS, then=f"consumerProgress -g {SKIP}-group"
    ),
    Case(f"skipAccumulatedMessage -g {RESET_LIVE} -t {RESET}", _RESETS),
    Case(f"resetOffsetByTime -g {QUEUE}-group -t {QUEUE} -s 0 -b {{broker}} -q 0", (V5,)),
    Case(
        f"resetOffsetByTime -g {QUEUE}-group -t {QUEUE} -s 0 -b {{broker}} -q 1 -o 1",
        (V5,),
        then=f"consumerProgress -g {QUEUE}-group",
    ),
    Case(f"resetOffsetByTime -g {QUEUE}-group -t {QUEUE} -s 0 -b {{broker}} -q 2 -o 99", (V5,)),
    Case(f"resetOffsetByTime -g {RESET_OFFLINE} -t {RESET} -s -1 -c DefaultCluster", (V5,)),
)
