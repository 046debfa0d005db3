"""Differences between the name servers of RocketMQ 4.2.0, 4.9.4 and 5.3.3 (docs/spec/nameserver.md A)."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from rewindmq.protocol.names import FAQ_URL, FAQ_URL_5
from rewindmq.protocol.profile import Profile

# BROKER_CHANNEL_EXPIRED_TIME; 5.x lets a broker announce its own (heartbeatTimeoutMillis).
BROKER_EXPIRY_SECONDS: Final = 120.0
# NettyServerConfig.serverChannelMaxIdleTimeSeconds.
CONNECTION_IDLE_SECONDS: Final = 120.0


@dataclass(frozen=True, slots=True)
class NamesrvProfile:
    """The behaviour of one release's name server, where releases differ.

    Attributes:
        first_scan_seconds: time from the start to the first scan for brokers that stopped registering.
        scan_seconds: time between two scans.
        checks_body_crc: the name server refuses a registration whose body does not match its ``bodyCrc32``.
        one_id_per_address: a registration removes its address from every other id of the broker.
        refuses_single_topic: the name server refuses a first registration with exactly one topic. Brokers of
            5.x register further topics one by one, so the whole table must come first.
        adds_unknown_topics: a registration with an unchanged data version still adds topics that the name
            server did not know at that broker. A 5.x broker registers two new topics in two requests, and
            both may carry the data version after the second topic.
        announced_expiry: the broker's own ``heartbeatTimeoutMillis`` replaces the expiry of 120 s.
        writes_old_routes: the response to GET_ROUTEINFO_BY_TOPIC (105) is always fastjson's legacy JSON. It
            has ``topicSynFlag``, the name of the queues' flag before 4.9.0.
        faq_url: the link in the remark about an unknown topic.
        shows_acting_master: routes and cluster tables have each broker's ``enableActingMaster``. Some clients
            written for 5.x require the field.
    """

    first_scan_seconds: float
    scan_seconds: float
    checks_body_crc: bool
    one_id_per_address: bool
    refuses_single_topic: bool
    adds_unknown_topics: bool
    announced_expiry: bool
    writes_old_routes: bool
    faq_url: str
    shows_acting_master: bool = False


PROFILES: Final = MappingProxyType(
    {
        Profile.V42: NamesrvProfile(5.0, 10.0, False, False, False, False, False, True, FAQ_URL),
        Profile.V49: NamesrvProfile(5.0, 10.0, True, True, False, False, False, False, FAQ_URL),
        # 5 ms is correct: 5.3.3 gives the initial delay in ms.
        Profile.V53: NamesrvProfile(0.005, 5.0, True, True, True, True, True, False, FAQ_URL_5, True),
    }
)
