"""What differs between releases at the broker, one row per profile (``behaviour.md`` B, D.10)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from rewindmq.broker.store.model import SearchMode
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.names import FAQ_URL, FAQ_URL_5
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.sysflag import PERM_READ_WRITE, Perm


@dataclass(frozen=True, slots=True)
class BrokerRules:
    """One release's choices.

    Attributes:
        bad_queue_code: answer to a pull whose queue id is out of range (B.4).
        search_mode: search by time (B.10).
        commit_is_checked: 15 demands a known group and topic (B.8).
        absent_entry_is_cached: 14 takes a queue that was never written for one read from its start (B.9).
        set_zero_if_not_found: 14 knows that request field (B.9).
        stores_offset_moved: each 21 leaves a message in OFFSET_MOVED_EVENT (B.5).
        reset_unknown_topic_code: 222 for a topic this broker does not have (D.10).
        tells_broadcast_on_close: a closed connection is announced to broadcast groups too (B.3).
        stores_topic_order: 17 keeps the ``order`` it is sent.
        dead_letter_perm: permission of a new dead-letter topic (B.1).
        faq_url: where remarks about missing topics and groups point (A.4).
    """

    bad_queue_code: ResponseCode = ResponseCode.SYSTEM_ERROR
    search_mode: SearchMode = SearchMode.NEAREST
    commit_is_checked: bool = False
    absent_entry_is_cached: bool = True
    set_zero_if_not_found: bool = False
    stores_offset_moved: bool = True
    reset_unknown_topic_code: ResponseCode = ResponseCode.SYSTEM_ERROR
    tells_broadcast_on_close: bool = True
    stores_topic_order: bool = False
    dead_letter_perm: int = PERM_READ_WRITE
    faq_url: str = FAQ_URL


_V49: Final = BrokerRules()
RULES: Final = MappingProxyType(
    {
        Profile.V42: replace(_V49, dead_letter_perm=int(Perm.WRITE)),
        Profile.V49: _V49,
        Profile.V53: BrokerRules(
            bad_queue_code=ResponseCode.INVALID_PARAMETER,
            search_mode=SearchMode.BOUNDARY,
            commit_is_checked=True,
            absent_entry_is_cached=False,
            set_zero_if_not_found=True,
            stores_offset_moved=False,
            reset_unknown_topic_code=ResponseCode.TOPIC_NOT_EXIST,
            tells_broadcast_on_close=False,
            stores_topic_order=True,
            faq_url=FAQ_URL_5,
        ),
    }
)
