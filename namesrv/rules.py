"""Where the name servers of RocketMQ 4.2.0, 4.9.4 and 5.3.3 differ (docs/spec/nameserver.md A)."""

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
class NamesrvRules:
    """One release's answers where releases disagree.

    Attributes:
        first_scan_seconds: from start to the first look for brokers that stopped registering.
        scan_seconds: between two looks.
        checks_body_crc: a registration whose body does not match its ``bodyCrc32`` is refused.
        one_id_per_address: a registration takes its address away from any other id of the broker.
        refuses_single_topic: a first registration with exactly one topic is refused, because 5.x brokers
            register further topics one by one and the whole table has to come first.
        adds_unknown_topics: a registration under the version held already adds the topics that the broker had
            none of; its brokers may announce two new topics under the version of the second.
        announced_expiry: the broker's own ``heartbeatTimeoutMillis`` replaces the 120 s.
        writes_old_routes: 105 is answered in fastjson's own JSON whatever the requester asks for, with
            ``topicSynFlag``, as queues' flags were called before 4.9.0.
        faq_url: where the remark about an unknown topic points.
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


RULES: Final = MappingProxyType(
    {
        Profile.V42: NamesrvRules(5.0, 10.0, False, False, False, False, False, True, FAQ_URL),
        Profile.V49: NamesrvRules(5.0, 10.0, True, True, False, False, False, False, FAQ_URL),
        # The 5 ms is no slip of this table: 5.3.3 gives the initial delay in ms.
        Profile.V53: NamesrvRules(0.005, 5.0, True, True, True, True, True, False, FAQ_URL_5),
    }
)
