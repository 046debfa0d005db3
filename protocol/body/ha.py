"""State of replication: body of the response to GET_BROKER_HA_STATUS (907); 5.x only."""

from __future__ import annotations

from msgspec import field

from rewindmq.protocol.body import RemotingBody
from rewindmq.protocol.integers import Int32, Int64


class HAConnectionRuntimeInfo(RemotingBody):
    """A slave's connection at its master.

    Attributes:
        addr: of the slave's end, ``host:port``.
        slave_ack_offset: the end of the slave's log, as it has reported; -1 before its first report.
        diff: bytes of the master's log that the slave has not reported.
        transferred_byte_in_second: bytes sent in the last whole second.
        transfer_from_where: log position of the next byte to send; -1 before the first.
    """

    addr: str
    slave_ack_offset: Int64 = 0
    diff: Int64 = 0
    in_sync: bool = False
    transferred_byte_in_second: Int64 = 0
    transfer_from_where: Int64 = 0


class HAClientRuntimeInfo(RemotingBody):
    """A slave's connection to its master's log; only zeros at a master.

    Attributes:
        master_addr: ``host:port`` of the master's log; None if it is unknown.
        transferred_byte_in_second: bytes received in the last whole second.
        max_offset: the end of this broker's log.
        last_read_timestamp: when the master sent something, ms since 1970; 0 without a connection.
        last_write_timestamp: when the slave reported, ms since 1970.
        master_flush_offset: for acting masters of 5.x.
    """

    master_addr: str | None = None
    transferred_byte_in_second: Int64 = 0
    max_offset: Int64 = 0
    last_read_timestamp: Int64 = 0
    last_write_timestamp: Int64 = 0
    master_flush_offset: Int64 = 0


class HARuntimeInfo(RemotingBody):
    """State of replication at a broker; a slave has no connections."""

    master: bool = False
    master_commit_log_max_offset: Int64 = 0
    in_sync_slave_nums: Int32 = 0
    ha_connection_info: list[HAConnectionRuntimeInfo] = field(default_factory=list)
    ha_client_runtime_info: HAClientRuntimeInfo = field(default_factory=HAClientRuntimeInfo)
