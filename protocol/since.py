"""The requests that not every release has: the profile from which on a server handles them."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.profile import RELEASES, Profile

# Source: the constants of ``RequestCode`` in the published rocketmq-common 4.2.0, 4.9.7 and 5.3.3. A code that
# is not here is in 4.2.0, or is RewindMQ's own.
SINCE: Final = MappingProxyType(
    {
        # Since 5.3.0 and 5.3.1.
        RequestCode.UPDATE_AND_CREATE_TOPIC_LIST: Profile.V53,
        RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST: Profile.V53,
        RequestCode.QUERY_DATA_VERSION: Profile.V49,
        RequestCode.SEND_REPLY_MESSAGE: Profile.V49,
        RequestCode.SEND_REPLY_MESSAGE_V2: Profile.V49,
        RequestCode.ADD_WRITE_PERM_OF_BROKER: Profile.V49,
        RequestCode.GET_ALL_PRODUCER_INFO: Profile.V49,
        RequestCode.DELETE_EXPIRED_COMMITLOG: Profile.V49,
        RequestCode.GET_TOPIC_CONFIG: Profile.V53,
        RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG: Profile.V53,
        RequestCode.LITE_PULL_MESSAGE: Profile.V53,
        RequestCode.SET_MESSAGE_REQUEST_MODE: Profile.V53,
        RequestCode.GET_BROKER_HA_STATUS: Profile.V53,
        RequestCode.RESET_MASTER_FLUSH_OFFSET: Profile.V53,
    }
)


def is_known(code: RequestCode, profile: Profile) -> bool:
    """Return whether the profile's release handles the request; others return REQUEST_CODE_NOT_SUPPORTED."""
    return RELEASES.index(profile.release) >= RELEASES.index(SINCE.get(code, Profile.V42))
