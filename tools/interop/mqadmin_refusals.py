"""The mqadmin commands that RewindMQ refuses, or that the suite does not run, each with its reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tools.interop.mqadmin_cases import V4, V5
from tools.interop.mqadmin_state import LOOK, OFFLINE

# How the explanation of a refused command begins, so that the page can tell it from a difference.
REFUSED: Final = "refused: "
_UNKNOWN: Final = "CODE: 3"


@dataclass(frozen=True)
class Refusal:
    """A command that RewindMQ refuses.

    Attributes:
        line: the command as typed, see ``Case``.
        why: the reason, with what to use instead; for the page.
        words: what mqadmin prints.
    """

    line: str
    why: str
    words: str = _UNKNOWN


_NO_ACCESS_CONTROL: Final = (
    "RocketMQ without access control fails, too; RewindMQ has none: SECURITY.md says what to use instead"
)
_NO_CONTROLLER: Final = (
    "RocketMQ without a controller refuses it, too; RewindMQ has none, so a broker's role never changes"
)
_NO_CONTAINER: Final = "RewindMQ has no broker container; RocketMQ's plain broker refuses it, too"
_NO_POP: Final = "RewindMQ serves no pop consumers: every group pulls already, and there are no pop records"
_NO_COLD_DATA: Final = (
    "RewindMQ never slows down groups that read old messages; RocketMQ's default is the same"
)
_NO_ROCKSDB: Final = (
    "RewindMQ has no RocksDB: its tables are JSON files already, and there is no second queue to compare"
)
_NO_STATIC_TOPICS: Final = "RewindMQ has no static topics; create the topic at each broker with updateTopic"
_NO_LITE_TOPICS: Final = "lite topics are new in 5.5, and v53 imitates 5.3.3, which does not know it"

_ACL_4: Final = (
    "updateAclConfig -b {broker} -a RocketMQ -s 12345678",
    "deleteAclConfig -b {broker} -a nobody",
    "clusterAclConfigVersion -b {broker}",
    "updateGlobalWhiteAddr -b {broker} -g 192.168.0.1",
)
_AUTH_5: Final = (
    "createUser -b {broker} -u somebody -p secret",
    "updateUser -b {broker} -u somebody -p secret",
    "deleteUser -b {broker} -u somebody",
    "getUser -b {broker} -u somebody",
    "listUser -b {broker}",
    "copyUser -f {broker} -t {broker} -u somebody",
    f"createAcl -b {{broker}} -s User:somebody -r Topic:{LOOK} -a Pub -d Allow",
    f"updateAcl -b {{broker}} -s User:somebody -r Topic:{LOOK} -a Pub -d Deny",
    "deleteAcl -b {broker} -s User:somebody",
    "getAcl -b {broker} -s User:somebody",
    "listAcl -b {broker}",
    "copyAcl -f {broker} -t {broker} -s User:somebody",
)
_CONTROLLER: Final = (
    "getSyncStateSet -a {namesrv} -b broker-a",
    "getBrokerEpoch -b broker-a",
    "getControllerMetaData -a {namesrv}",
    "getControllerConfig -a {namesrv}",
    "updateControllerConfig -a {namesrv} -k key -v value",
    "electMaster -a {namesrv} -b 1 -bn broker-a -c DefaultCluster",
    "cleanBrokerMetadata -a {namesrv} -bn broker-a -c DefaultCluster -b 1",
)
_COLD_DATA: Final = (
    "getColdDataFlowCtrInfo -b {broker}",
    f"updateColdDataFlowCtrGroupConfig -b {{broker}} -g {OFFLINE} -v 100",
    f"removeColdDataFlowCtrGroupConfig -b {{broker}} -g {OFFLINE}",
)
_LITE_TOPICS: Final = (
    f"getParentTopicInfo -p {LOOK}",
    f"getLiteTopicInfo -p {LOOK} -l lite",
    f"getLiteClientInfo -p {LOOK} -g {OFFLINE} -c nobody",
    f"getLiteGroupInfo -p {LOOK} -g {OFFLINE}",
    f"triggerLiteDispatch -p {LOOK} -g {OFFLINE}",
)
_IN_BOTH: Final = (
    Refusal(
        "updateNamesrvConfig -k nix -v true",
        "a name server changes only orderMessageEnable while it runs; RocketMQ accepts every name",
        "these can: orderMessageEnable",
    ),
    Refusal(
        "updateBrokerConfig -b {broker} -k nix -v true",
        "a broker changes only the keys in flow_control.md while it runs; RocketMQ accepts every name",
        "CODE: 1",
    ),
)

REFUSALS: Final[dict[str, tuple[Refusal, ...]]] = {
    V4: (*_IN_BOTH, *(Refusal(line, _NO_ACCESS_CONTROL) for line in _ACL_4)),
    V5: (
        *_IN_BOTH,
        *(Refusal(line, _NO_ACCESS_CONTROL) for line in _AUTH_5),
        *(Refusal(line, _NO_CONTROLLER) for line in _CONTROLLER),
        *(Refusal(line, _NO_COLD_DATA) for line in _COLD_DATA),
        Refusal("addBroker -c {broker} -b nix", _NO_CONTAINER),
        Refusal("removeBroker -c {broker} -b DefaultCluster:broker-a:0", _NO_CONTAINER),
        Refusal("exportPopRecord -b {broker}", _NO_POP),
        Refusal("updateStaticTopic -t mq-static -qn 2 -b broker-a", _NO_STATIC_TOPICS),
        Refusal(
            "remappingStaticTopic -t mq-static-nix -b broker-a",
            _NO_STATIC_TOPICS,
            "No topic route to do the remapping",
        ),
        Refusal(
            "setCommitLogReadAheadMode -b {broker} -m 0",
            "RewindMQ leaves reading ahead to the operating system; blockdev --setra sets it for the disk",
        ),
        Refusal("checkRocksdbCqWriteProgress -c DefaultCluster", _NO_ROCKSDB),
        Refusal("rocksDBConfigToJson -c DefaultCluster -t topics", _NO_ROCKSDB),
        Refusal(
            "switchTimerEngine -b {broker} -e R",
            "a RocketMQ broker refuses it, too, unless its timers are in RocksDB; RewindMQ has no RocksDB",
        ),
        *(Refusal(line, _NO_LITE_TOPICS, " error") for line in _LITE_TOPICS),
        Refusal("getBrokerLiteInfo -b {broker}", _NO_LITE_TOPICS),
    ),
}

# Commands that no test runs.
NOT_RUN: Final[dict[str, str]] = {
    "startMonitoring": "the command never ends and prints nothing: it logs all lags once a minute",
}
