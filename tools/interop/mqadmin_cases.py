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
    r"usage[A-Z]|eventLoop|popRevive_|commitLogDiskRatio_|scheduleMessageOffset_|putMessageDistributeTime",
    r"getTransferr?edTps|brokerVersion ",
)
# Shown after the consumer has learned of its retry topic and has committed: up to a minute after its start.
_RETRY_QUEUE: Final = ("^%RETRY%",)
# The master's address, and the end of its log.
_OF_MASTER: Final = ("^#Master",)
_LOCAL: Final = "the command reads local files and asks no server"


@dataclass(frozen=True)
class MqadminCase:
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
    MqadminCase(f"topicStatus -t {LOOK}"),
    MqadminCase("topicStatus -t nix"),
    MqadminCase(f"topicStatus -t {IDLE}"),
    MqadminCase(f"topicRoute -t {LOOK}"),
    MqadminCase(f"topicRoute -t {LOOK} -l"),
    MqadminCase("topicRoute -t nix"),
    MqadminCase(f"topicClusterList -t {LOOK}"),
    MqadminCase("topicList", is_unordered=True, ignored=_SYSTEM_TOPICS),
    MqadminCase("topicList -c", is_unordered=True, ignored=_SYSTEM_TOPICS),
    # Versions and rates differ.
    MqadminCase("clusterList", only_shape=True),
    MqadminCase("clusterList -m", only_shape=True),
    MqadminCase("brokerStatus -b {broker}", only_shape=True, ignored=_NOT_SHOWN),
    MqadminCase("brokerStatus -c DefaultCluster", only_shape=True, ignored=_NOT_SHOWN),
    MqadminCase("consumerProgress", is_unordered=True),
    *(
        MqadminCase(f"consumerProgress -g {group}", ignored=_RETRY_QUEUE)
        for group in (LIVE, OFFLINE, HALF, NO_OFFSETS, NO_RETRY_TOPIC, "nix")
    ),
    MqadminCase(f"consumerProgress -g {LIVE} -s true", ignored=_RETRY_QUEUE),
    MqadminCase(f"consumerProgress -g {LIVE} -t {LOOK}", matches=(V5,)),
    MqadminCase(f"consumerConnection -g {LIVE}"),
    MqadminCase(f"consumerConnection -g {LIVE} -b {{broker}}"),
    MqadminCase(f"consumerConnection -g {OFFLINE}"),
    MqadminCase("consumerConnection -g nix"),
    MqadminCase(f"producerConnection -g {PRODUCERS} -t {LOOK}"),
    MqadminCase(f"producerConnection -g nix -t {LOOK}"),
    MqadminCase("producer -b {broker}", is_unordered=True),
    MqadminCase(f"consumerStatus -g {LIVE}"),
    MqadminCase(f"consumerStatus -g {LIVE} -s"),
    MqadminCase(f"consumerStatus -g {LIVE} -i {{client}}", only_shape=True, ignored=_RETRY_QUEUE),
    MqadminCase(f"consumerStatus -g {LIVE} -i 127.0.0.1@nobody"),
    MqadminCase(f"consumerStatus -g {OFFLINE}"),
    MqadminCase(f"queryMsgByOffset -t {LOOK} -b broker-a -i 0 -o 1", is_unordered=True),
    MqadminCase(f"queryMsgByOffset -t {LOOK} -b broker-x -i 0 -o 1"),
    MqadminCase(f"queryMsgByKey -t {LOOK} -k key-1"),
    MqadminCase(f"queryMsgByKey -t {LOOK} -k nix"),
    MqadminCase(f"queryMsgByUniqueKey -t {LOOK} -i {{id}}", is_unordered=True),
    # The tool of 4.9.8 takes 24 s to find nothing, also at RocketMQ's broker.
    MqadminCase(f"queryMsgByUniqueKey -t {LOOK} -i 7F000001000000000000000000000000", matches=(V5,)),
    MqadminCase("queryMsgById -i {offset_id}", matches=(V4,), is_unordered=True),
    MqadminCase(f"queryMsgById -i {{offset_id}} -t {LOOK}", matches=(V5,), is_unordered=True),
    MqadminCase(f"queryMsgById -i {{id}} -t {LOOK}", matches=(V5,), is_unordered=True),
    MqadminCase("queryMsgTraceById -i {traced}", only_shape=True),
    MqadminCase(f"queryCq -t {LOOK} -q 0 -i 0 -c 2"),
    MqadminCase(f"queryCq -t {LOOK} -q 0 -i 1 -c 9 -b {{broker}} -g {LIVE}"),
    MqadminCase(f"queryCq -t {LOOK} -q 0 -i 0 -c 1 -b {{broker}} -g {HALF}"),
    MqadminCase(f"queryCq -t {LOOK} -q 9 -i 0 -c 1 -b {{broker}}"),
    MqadminCase(f"printMsg -t {LOOK}", is_unordered=True),
    MqadminCase(f"consumeMessage -t {LOOK}", is_unordered=True),
    MqadminCase(f"consumeMessage -t {LOOK} -b broker-a -i 1 -o 1 -c 2"),
    MqadminCase(f"getConsumerConfig -g {OFFLINE}"),
    MqadminCase(f"allocateMQ -t {LOOK} -i 127.0.0.1,127.0.0.2"),
    MqadminCase("brokerConsumeStats -b {broker}", is_unordered=True),
    MqadminCase(f"printMsg -t {TRACED} -s TagA"),
    # The figures of a statistic change every ten seconds.
    MqadminCase("statsAll", only_shape=True, is_unordered=True, ignored=_SYSTEM_TOPICS),
    MqadminCase(f"statsAll -t {LOOK}", only_shape=True, is_unordered=True),
    MqadminCase(f"statsAll -a -t {IDLE}"),
    MqadminCase("statsAll -t nix"),
    MqadminCase(f"printMsgByQueue -t {LOOK} -a broker-a -i 1 -p true -d true -f true"),
    MqadminCase("exportMetadata -c DefaultCluster -f export"),
    MqadminCase("exportMetadata -b {broker} -t -f export"),
    MqadminCase("exportMetadata -b {broker} -g -f export"),
    MqadminCase("exportConfigs -c DefaultCluster -f export"),
    MqadminCase("exportMetrics -c DefaultCluster -f export"),
    MqadminCase("haStatus -b {broker}", matches=(V5,), ignored=_OF_MASTER),
    MqadminCase("haStatus -c DefaultCluster", matches=(V5,), ignored=_OF_MASTER),
    MqadminCase("dumpCompactionLog -f nix", matches=(V5,), why=_LOCAL),
    MqadminCase("exportMetadataInRocksDB -p nix -t topics", matches=(V5,), why=_LOCAL),
)

CHANGING: Final = (
    MqadminCase("updateTopic -b {broker} -t mq-made-1 -r 4 -w 6", then="topicRoute -t mq-made-1 -l"),
    MqadminCase(
        "updateTopic -c DefaultCluster -t mq-made-2 -r 2 -w 2 -p 4", then="topicRoute -t mq-made-2 -l"
    ),
    MqadminCase(
        "updateTopicList -b {broker} -f topics.json", matches=(V5,), then="topicRoute -t mq-listed -l"
    ),
    MqadminCase(
        "updateTopicList -c DefaultCluster -f more-topics.json", (V5,), then="topicRoute -t mq-listed-2 -l"
    ),
    MqadminCase(
        "updateTopicList -b {broker} -f bad-topics.json",
        matches=(V5,),
        then="topicRoute -t mq-not-listed",
        ends_route=True,
        # The remark of 5.5.0 names the topic, that of 5.3.3 does not.
        ignored=("contains illegal characters",),
    ),
    MqadminCase("updateTopicList -b {broker} -f bad-attribute.json", matches=(V5,)),
    MqadminCase("updateTopic -b {broker} -t TBW102"),
    MqadminCase("updateTopic -b {broker} -t bad*name", matches=(V4,)),
    MqadminCase(f"updateTopicPerm -b {{broker}} -t {SENT} -p 6"),
    MqadminCase("updateSubGroup -b {broker} -g mq-made-1", then="getConsumerConfig -g mq-made-1"),
    MqadminCase(
        "updateSubGroup -c DefaultCluster -g mq-made-2 -r 3 -s true -m true -d true",
        then="getConsumerConfig -g mq-made-2",
    ),
    MqadminCase(
        "updateSubGroupList -b {broker} -f groups.json",
        matches=(V5,),
        then="getConsumerConfig -g mq-listed",
    ),
    MqadminCase("resetMasterFlushOffset -b {broker} -o 0", matches=(V5,)),
    MqadminCase(f"setConsumeMode -b {{broker}} -t {LOOK} -g {OFFLINE} -m POP -q 0", matches=(V5,)),
    MqadminCase(f"setConsumeMode -b {{broker}} -t {LOOK} -g {OFFLINE} -m PULL", matches=(V5,)),
    MqadminCase(f"setConsumeMode -b {{broker}} -t %RETRY%{OFFLINE} -g {OFFLINE} -m PULL", matches=(V5,)),
    MqadminCase(
        f"deleteTopic -c DefaultCluster -t {DOOMED}", then=f"topicRoute -t {DOOMED}", ends_route=True
    ),
    MqadminCase(f"deleteSubGroup -b {{broker}} -g {DOOMED_GROUP} -r true"),
    MqadminCase(
        f"cloneGroupOffset -s {OFFLINE} -d {CLONED} -t {LOOK} -o false", then=f"consumerProgress -g {CLONED}"
    ),
    MqadminCase(f"cloneGroupOffset -s nix -d {CLONED} -t {LOOK} -o false"),
    MqadminCase(f"sendMessage -t {SENT} -p hello", only_shape=True),
    MqadminCase(
        f"sendMessage -t {SENT_TO} -p hello -b broker-a -i 3 -k from-tool -c TagT",
        then=f"queryMsgByKey -t {SENT_TO} -k from-tool",
    ),
    MqadminCase(
        "sendMessage -t mq-made-by-sending -p hello",
        only_shape=True,
        then="topicRoute -t mq-made-by-sending -l",
    ),
    MqadminCase(f"checkMsgSendRT -t {SENT} -a 3 -s 16", only_shape=True),
    MqadminCase("updateKvConfig -s space -k key -v value"),
    MqadminCase("deleteKvConfig -s space -k key"),
    MqadminCase("updateBrokerConfig -b {broker} -k autoCreateTopicEnable -v true"),
    MqadminCase("updateOrderConf -t mq-look -m put -v broker-a:4", then="updateOrderConf -t mq-look -m get"),
    MqadminCase("wipeWritePerm -b broker-x"),
    MqadminCase("addWritePerm -b broker-x"),
    MqadminCase("sendMsgStatus -b broker-a -c 2", only_shape=True),
    MqadminCase("updateNamesrvConfig -k orderMessageEnable -v true"),
    MqadminCase("deleteExpiredCommitLog -b {broker}"),
    MqadminCase("deleteExpiredCommitLog -c DefaultCluster"),
    MqadminCase("cleanExpiredCQ -b {broker}"),
    MqadminCase("cleanUnusedTopic -b {broker}"),
)

_RESETS: Final = (V4, V5, V5_CONSUMERS)

RESETTING: Final = (
    MqadminCase(f"resetOffsetByTime -g {RESET_OFFLINE} -t {RESET} -s -1", _RESETS),
    MqadminCase(f"resetOffsetByTime -g {RESET_OFFLINE} -t {RESET} -s 0", _RESETS),
    MqadminCase(f"resetOffsetByTime -g {RESET_OFFLINE} -t {RESET} -s 2020-01-01#00:00:00:000", _RESETS),
    MqadminCase(f"resetOffsetByTime -g {RESET_OFFLINE} -t nix -s 0", _RESETS),
    MqadminCase(f"resetOffsetByTime -g {RESET_OFFLINE} -t {RESET} -s rubbish", _RESETS),
    MqadminCase(f"resetOffsetByTime -g {RESET_HALF} -t {RESET} -s 0", _RESETS),
    MqadminCase(f"resetOffsetByTime -g {RESET_NO_OFFSETS} -t {RESET} -s 0", _RESETS),
    MqadminCase(f"resetOffsetByTime -g {RESET_LIVE} -t {RESET} -s 0", _RESETS),
    MqadminCase(f"resetOffsetByTime -g {RESET_LIVE} -t {RESET} -s 0 -f false", _RESETS),
    MqadminCase(f"resetOffsetByTime -g {RESET_LIVE} -t {RESET} -s now", _RESETS),
    MqadminCase(
        f"skipAccumulatedMessage -g {SKIP}-group -t {SKIP}", _RESETS, then=f"consumerProgress -g {SKIP}-group"
    ),
    MqadminCase(f"skipAccumulatedMessage -g {RESET_LIVE} -t {RESET}", _RESETS),
    MqadminCase(f"resetOffsetByTime -g {QUEUE}-group -t {QUEUE} -s 0 -b {{broker}} -q 0", (V5,)),
    MqadminCase(
        f"resetOffsetByTime -g {QUEUE}-group -t {QUEUE} -s 0 -b {{broker}} -q 1 -o 1",
        (V5,),
        then=f"consumerProgress -g {QUEUE}-group",
    ),
    MqadminCase(f"resetOffsetByTime -g {QUEUE}-group -t {QUEUE} -s 0 -b {{broker}} -q 2 -o 99", (V5,)),
    MqadminCase(f"resetOffsetByTime -g {RESET_OFFLINE} -t {RESET} -s -1 -c DefaultCluster", (V5,)),
)
