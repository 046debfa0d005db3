"""Check for requests that only a master serves (4.9.4 ``AdminBrokerProcessor#validateSlave``)."""

from __future__ import annotations

from rewindmq.broker.config import BrokerConfig
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.errors import RequestError


def check_master(config: BrokerConfig) -> None:
    """Refuse to change topics or groups at a slave, which copies these tables from its master.

    Raises:
        RequestError: SYSTEM_ERROR (1), with the remark of 4.9.4.
    """
    if config.is_slave:
        raise RequestError(
            ResponseCode.SYSTEM_ERROR,
            "Can't modify topic or subscription group from slave broker, please execute it from master"
            " broker.",
        )
