"""The broker's configuration: RocketMQ's ``broker.conf`` keys, and a few of RewindMQ's own."""

from __future__ import annotations

import ipaddress
import logging
import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec

from rewindmq.broker.store.config import StoreConfig
from rewindmq.broker.store.errors import StoreError
from rewindmq.protocol.body.assignment import MessageRequestMode
from rewindmq.protocol.config.property_file import property_fields
from rewindmq.protocol.errors import ConfigError
from rewindmq.protocol.ha_frame import MAX_TRANSFER_BYTES
from rewindmq.protocol.limits import MAX_FRAME_BYTES, MAX_QUEUE_NUMS
from rewindmq.protocol.message.sysflag import PERM_READ_WRITE
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.remoting.process.property_loader import load_properties
from rewindmq.protocol.remoting.traffic.held_bytes import (
    FRAME_SECONDS,
    MAX_UNFINISHED_BYTES,
    MAX_UNREAD_BYTES,
)
from rewindmq.protocol.reset_mode import ResetMode, default_mode

_log = logging.getLogger(__name__)

# Both names become topic names (docs/spec/store.md 8.2).
_NAME: Final = re.compile(r"^[A-Za-z0-9_.%|-]{1,127}$")
_ADDRESS: Final = re.compile(r"[^\s:;]+:([0-9]{1,5})")

_HOURS: Final = r"^ *[0-9]{1,2} *(; *[0-9]{1,2} *)*;? *$"

NameText = Annotated[str, msgspec.Meta(pattern=_NAME.pattern)]
Millis = Annotated[int, msgspec.Meta(ge=1, le=86_400_000)]
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
QueueCount = Annotated[int, msgspec.Meta(ge=1, le=MAX_QUEUE_NUMS)]
# With less, no connection could send or receive the largest frame.
FrameBytes = Annotated[int, msgspec.Meta(ge=MAX_FRAME_BYTES)]


class BrokerRole(StrEnum):
    """Master or slave, and whether a send waits for a slave (RocketMQ ``BrokerRole``)."""

    ASYNC_MASTER = "ASYNC_MASTER"
    SYNC_MASTER = "SYNC_MASTER"
    SLAVE = "SLAVE"


class EmulatedBusy(StrEnum):
    """The error with which the broker refuses every send, to imitate a busy RocketMQ broker; NONE: no error.

    In RocketMQ, TIMEOUT_CLEAN_QUEUE means that the request waited too long in its queue. The others mean that
    the page cache is busy.
    """

    NONE = "NONE"
    REJECTREQUEST = "REJECTREQUEST"
    PC_SYNCHRONIZED = "PC_SYNCHRONIZED"
    PCBUSY_CLEAN_QUEUE = "PCBUSY_CLEAN_QUEUE"
    TIMEOUT_CLEAN_QUEUE = "TIMEOUT_CLEAN_QUEUE"


class BrokerConfig(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
    """RocketMQ 4.9.4's ``BrokerConfig`` and ``NettyServerConfig``: the keys that RewindMQ uses.

    Keys in the file are the attributes in camelCase. Times are ms and sizes bytes unless noted.

    Attributes:
        namesrv_addr: ``host:port;host:port``; with None the broker runs without a name server.
        listen_port: 0 takes any free port.
        bind_address: the interface to listen on (5.x key); the default serves this machine only.
        allow_open_access: a ``bind_address`` that is not loopback may be used (RewindMQ's own key).
        broker_ip1: the host to register and to write into message ids; None means the bound host.
        ha_listen_port: where slaves connect; None means the port after ``listen_port``, or any.
        ha_master_address: the HA address of a slave's master; None takes it from the name server.
        ha_allowed_addresses: IP addresses and networks, separated by ``;``, whose connections at the HA port
            count as slaves (RewindMQ's own key). None: registered slaves count, and connections of this
            machine or of a registered slave's machine may read.
        enable_mixed_message_type: topics may have ``message.type=MIXED`` (5.x key).
        slave_timeout: how long a send waits for a slave under SYNC_MASTER.
        file_reserved_time: hours for which a log file is retained after its last message.
        delete_when: hours of the day, local time, in which older files are deleted: ``04`` or ``04;16``.
        disk_max_used_space_ratio: percent of the disk in use above which older files are deleted at any hour.
        disk_space_clean_forcibly_ratio: percent above which files of any age are deleted.
        disk_space_warning_level_ratio: percent above which the broker also refuses messages.
        store_path_commit_log: must be ``commitlog`` under the root.
        auto_delete_unused_stats: delete the statistics of deleted topics and groups.
        max_stats_idle_time_in_minutes: delete statistics idle for longer; -1: never (5.x key).
        server_load_balancer_enable: QUERY_ASSIGNMENT (400) divides the queues among the consumers (5.x key).
        default_message_request_mode: how groups read topics whose mode was not set (5.x key).
        default_pop_share_queue_num: consumers that share each other's queues if the mode was not set (5.x
            key); 0 or less: all.
        load_balance_poll_name_server_interval: age of a topic's queues after which the broker asks a name
            server again before it assigns them (5.x key).
        server_max_connections: accepted connections in all; None means what the process's open files permit
            (RewindMQ's own key).
        server_max_connections_per_address: accepted connections from one IP address; None means half of
            ``server_max_connections`` (RewindMQ's own key).
        profile: the release to imitate (RewindMQ's own key).
        recall_message_enable: accept RECALL_MESSAGE, 370 (5.x key).
        allow_recall_when_broker_not_writeable: also while ``broker_permission`` refuses sends (5.x key).
        store_reply_message_enable: store replies (SEND_REPLY_MESSAGE, 324 and 325), too.
        reply_thread_pool_queue_capacity: replies whose requester has not answered yet; the broker refuses
            more with SYSTEM_BUSY (2).
        use_server_side_reset_offset: false: resets of v53 are in mode ``classic``, too (5.x key).
        reset_mode: the mode of resets that name none (RewindMQ's own key); None means the release's default.
        emulated_busy: RewindMQ's own key; it can be changed while the broker runs, see ``live_config``.
        server_frame_timeout_millis: time for the rest of a frame after its first bytes, not scaled
            (RewindMQ's own key).
        server_max_unfinished_frame_bytes: bytes of frames whose rest is missing, of all connections
            (RewindMQ's own key).
        server_max_unread_bytes: bytes that clients have not read, of all connections (RewindMQ's own key).
        clone_group_offset_of_all_topics: CLONE_GROUP_OFFSET (314) without a topic copies the offsets of all
            topics (RewindMQ's own key).
        revive_queue_num: queues of the revive topic, in which checkpoints and acks of POPs wait (5.x key).
            Fewer than before strand those in the other queues.
        pop_from_retry_probability: percent of POPs that read the retry topic first (5.x key).
        init_pop_offset_by_check_msg_in_mem: a new group that pops from the end gets all messages of a queue
            whose first message is in memory (5.x key).
        pop_response_return_actual_retry_topic: revived messages have the name of their retry topic (5.x key).
        enable_pop_message_threshold: a queue is passed over while more of its messages than
            ``popInflightMessageThreshold`` are in flight (5.x key).
        store: RocketMQ's ``MessageStoreConfig``; its keys are in the same file.
    """

    broker_cluster_name: NameText = "DefaultCluster"
    broker_name: NameText = "DEFAULT_BROKER"
    broker_id: Annotated[int, msgspec.Meta(ge=0, le=0x7FFF_FFFF)] = 0
    broker_role: BrokerRole = BrokerRole.ASYNC_MASTER
    namesrv_addr: str | None = None
    listen_port: Annotated[int, msgspec.Meta(ge=0, le=65_535)] = 10_911
    ha_listen_port: Annotated[int, msgspec.Meta(ge=0, le=65_535)] | None = None
    ha_master_address: str | None = None
    ha_allowed_addresses: str | None = None
    ha_transfer_batch_size: Annotated[int, msgspec.Meta(ge=1, le=MAX_TRANSFER_BYTES)] = 32_768
    ha_send_heartbeat_interval: Millis = 5_000
    ha_housekeeping_interval: Millis = 20_000
    ha_slave_fallbehind_max: Annotated[int, msgspec.Meta(ge=0)] = 268_435_456
    slave_timeout: Millis = 3_000
    slave_read_enable: bool = False
    offset_check_in_slave: bool = False
    bind_address: str = "127.0.0.1"
    allow_open_access: bool = False
    broker_ip1: str | None = msgspec.field(default=None, name="brokerIP1")
    server_frame_timeout_millis: Millis = int(FRAME_SECONDS * 1_000)
    server_max_unfinished_frame_bytes: FrameBytes = MAX_UNFINISHED_BYTES
    server_max_unread_bytes: FrameBytes = MAX_UNREAD_BYTES
    region_id: str = "DefaultRegion"
    trace_on: bool = True
    broker_permission: Annotated[int, msgspec.Meta(ge=0, le=7)] = PERM_READ_WRITE
    auto_create_topic_enable: bool = True
    auto_create_subscription_group: bool = True
    default_topic_queue_nums: QueueCount = 8
    cluster_topic_enable: bool = True
    broker_topic_enable: bool = True
    trace_topic_enable: bool = False
    msg_trace_topic_name: str = "RMQ_SYS_TRACE_TOPIC"
    notify_consumer_ids_changed_enable: bool = True
    enable_property_filter: bool = False
    enable_mixed_message_type: bool = False
    lite_pull_message_enable: bool = True
    long_polling_enable: bool = True
    short_polling_time_mills: Millis = 1_000
    register_name_server_period: Millis = 30_000
    register_broker_timeout_mills: Millis = 6_000
    flush_consumer_offset_interval: Millis = 5_000
    flush_delay_offset_interval: Millis = 10_000
    store_path_root_dir: str = "~/store"
    store_path_commit_log: str | None = None
    flush_interval_commit_log: Millis = 500
    flush_consume_queue_thorough_interval: Millis = 60_000
    sync_flush_timeout: Millis = 5_000
    file_reserved_time: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] = 72
    delete_when: Annotated[str, msgspec.Meta(pattern=_HOURS)] = "04"
    disk_max_used_space_ratio: int = 75
    disk_space_clean_forcibly_ratio: int = 85
    disk_space_warning_level_ratio: int = 90
    clean_file_forcibly_enable: bool = True
    clean_resource_interval: Millis = 10_000
    delete_commit_log_files_interval: Millis = 100
    reject_transaction_message: bool = False
    # None means the profile's default.
    transaction_check_interval: Millis | None = None
    server_load_balancer_enable: bool = True
    default_message_request_mode: MessageRequestMode = MessageRequestMode.PULL
    default_pop_share_queue_num: Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)] = -1
    load_balance_poll_name_server_interval: Millis = 30_000
    transaction_time_out: Millis = 6_000
    transaction_check_max: Annotated[int, msgspec.Meta(ge=1, le=1_000)] = 15
    recall_message_enable: bool = False
    allow_recall_when_broker_not_writeable: bool = True
    store_reply_message_enable: bool = True
    reply_thread_pool_queue_capacity: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 10_000
    # None means the profile's default.
    auto_delete_unused_stats: bool | None = None
    max_stats_idle_time_in_minutes: Annotated[int, msgspec.Meta(ge=-1, le=1_000_000)] = -1
    server_max_connections: Annotated[int, msgspec.Meta(ge=1)] | None = None
    server_max_connections_per_address: Annotated[int, msgspec.Meta(ge=1)] | None = None
    profile: Profile = Profile.V49
    use_server_side_reset_offset: bool = True
    reset_mode: ResetMode | None = None
    emulated_busy: EmulatedBusy = EmulatedBusy.NONE
    clone_group_offset_of_all_topics: bool = False
    revive_queue_num: Annotated[int, msgspec.Meta(ge=1, le=256)] = 8
    revive_interval: Millis = 1_000
    pop_polling_size: Annotated[int, msgspec.Meta(ge=1)] = 1_024
    max_pop_polling_size: Annotated[int, msgspec.Meta(ge=1)] = 100_000
    init_pop_offset_by_check_msg_in_mem: bool = True
    enable_retry_topic_v2: bool = msgspec.field(default=False, name="enableRetryTopicV2")
    retrieve_message_from_pop_retry_topic_v1: bool = msgspec.field(
        default=True, name="retrieveMessageFromPopRetryTopicV1"
    )
    pop_from_retry_probability: Annotated[int, msgspec.Meta(ge=0, le=100)] = 20
    pop_response_return_actual_retry_topic: bool = False
    enable_pop_message_threshold: bool = False
    pop_inflight_message_threshold: Annotated[int, msgspec.Meta(ge=0)] = 10_000
    clear_retry_topic_when_delete_topic: bool = True
    store: StoreConfig = msgspec.field(default_factory=StoreConfig)

    def __post_init__(self) -> None:
        for key, name in (("brokerName", self.broker_name), ("brokerClusterName", self.broker_cluster_name)):
            if not _NAME.fullmatch(name):
                raise ConfigError(
                    f"{key} = {name!r}: 1 to 127 characters of A-Z a-z 0-9 _ . % | - are allowed"
                )
        _check_role(self.broker_id, self.broker_role)
        _check_ip(self.broker_ip1)
        parse_namesrv_addr(self.namesrv_addr)
        parse_networks(self.ha_allowed_addresses)
        log = self.store_path_commit_log
        if log is not None and Path(log).expanduser() != self.root / "commitlog":
            # A broker that ignored the key would open an empty store where the user expects a full one.
            raise ConfigError(
                f"storePathCommitLog = {log!r}: the commit log must be {self.root / 'commitlog'}, "
                "under storePathRootDir"
            )

    def with_namesrv_addr(self, namesrv_addr: str) -> BrokerConfig:
        """Return a copy with other name servers; raise ConfigError if they are malformed."""
        return msgspec.structs.replace(self, namesrv_addr=namesrv_addr)

    @property
    def is_slave(self) -> bool:
        return self.broker_role is BrokerRole.SLAVE

    @property
    def root(self) -> Path:
        return Path(self.store_path_root_dir).expanduser()

    @property
    def table_folder(self) -> Path:
        """Where the files of tables are."""
        return self.root / "config"

    @property
    def default_reset_mode(self) -> ResetMode:
        """The mode of resets that name none: ``reset_mode``, else the default of the release."""
        if self.reset_mode is not None:
            return self.reset_mode
        return default_mode(self.profile) if self.use_server_side_reset_offset else ResetMode.CLASSIC

    @property
    def namesrv_addresses(self) -> tuple[str, ...]:
        return parse_namesrv_addr(self.namesrv_addr)

    @property
    def ha_allowed_networks(self) -> tuple[Network, ...] | None:
        """The networks of ``ha_allowed_addresses``; None if the key is not set."""
        return parse_networks(self.ha_allowed_addresses)


def _check_role(broker_id: int, role: BrokerRole) -> None:
    if (role is BrokerRole.SLAVE) != (broker_id > 0):
        raise ConfigError(
            f"brokerId = {broker_id} with brokerRole = {role}: a SLAVE has an id above 0, a master 0"
        )


def _check_ip(text: str | None) -> None:
    if text is None:
        return
    try:
        ipaddress.ip_address(text)
    except ValueError:
        raise ConfigError(f"brokerIP1 {text!r} is not an IP address, which message ids require") from None


def parse_namesrv_addr(text: str | None) -> tuple[str, ...]:
    """Return the addresses of ``host:port;host:port``, each once, in their order.

    Raises:
        ConfigError: if a part is not ``host:port``.
    """
    addresses: dict[str, None] = {}
    for piece in (text or "").split(";"):
        address = piece.strip()
        if not address:
            continue
        match = _ADDRESS.fullmatch(address)
        if match is None or not 0 < int(match.group(1)) <= 65_535:
            raise ConfigError(
                f"name server address {address!r} is not host:port (several are separated by ;)"
            )
        addresses[address] = None
    return tuple(addresses)


def parse_networks(text: str | None) -> tuple[Network, ...] | None:
    """Return the networks of ``address;network/bits``; None if the text is None.

    Raises:
        ConfigError: a part is neither an IP address nor a network, or there is none.
    """
    if text is None:
        return None
    try:
        networks = tuple(
            ipaddress.ip_network(piece.strip(), strict=False) for piece in text.split(";") if piece.strip()
        )
    except ValueError as error:
        raise ConfigError(f"haAllowedAddresses {text!r}: {error}") from None
    if not networks:
        raise ConfigError("haAllowedAddresses is empty: name at least one address, or remove the key")
    return networks


def read_broker_config(
    path: Path | None,
    *,
    is_strict: bool = False,
    fallback_namesrv_addr: str | None = None,
    **overrides: object,
) -> BrokerConfig:
    """Read the configuration from a file; options of the command line override it.

    Args:
        is_strict: raise for unknown keys; otherwise warn and ignore them, as RocketMQ does.
        fallback_namesrv_addr: name servers to use if neither file nor command line has any.
        overrides: checked values by field name; None means not given.

    Raises:
        ConfigError: one line that names file, line and key.
    """
    fields = {} if path is None else _fields_of(path, is_strict=is_strict)
    fields.update({name: value for name, value in overrides.items() if value is not None})
    if fallback_namesrv_addr:
        fields.setdefault("namesrv_addr", fallback_namesrv_addr)
    return BrokerConfig(**fields)


def _fields_of(path: Path, *, is_strict: bool) -> dict[str, Any]:
    fields, not_of_broker = load_properties(BrokerConfig, path)
    store_fields, not_of_store = load_properties(StoreConfig, path)
    unknown = [key for key in not_of_broker if key in not_of_store]
    if unknown and is_strict:
        raise ConfigError(f"{path}: {'; '.join(map(_no_such_key, unknown))}")
    if unknown:
        _log.warning("%s: ignored unknown keys: %s", path, ", ".join(unknown))
    try:
        fields["store"] = StoreConfig(**store_fields)
    except StoreError as error:
        raise ConfigError(f"{path}: {error}") from None
    try:
        _check_role(fields.get("broker_id", 0), fields.get("broker_role", BrokerRole.ASYNC_MASTER))
        _check_ip(fields.get("broker_ip1"))
        parse_namesrv_addr(fields.get("namesrv_addr"))
        parse_networks(fields.get("ha_allowed_addresses"))
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None
    return fields


def _no_such_key(key: str) -> str:
    from difflib import get_close_matches

    known = [*property_fields(BrokerConfig), *property_fields(StoreConfig)]
    similar = get_close_matches(key, known, n=1)
    return f"there is no key {key}" + (f", did you mean {similar[0]}?" if similar else "")
