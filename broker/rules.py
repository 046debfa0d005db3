"""What differs between releases at the broker, one row per profile.

Specification: docs/spec/broker.md B, docs/spec/reset.md D.10.
"""

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
        bad_queue_code: answer to a pull or send whose queue id is out of range (B.4), and to a send to a
            topic with an impossible name.
        search_mode: search by time (B.10).
        commit_is_checked: 15 demands a known group and topic (B.8).
        absent_entry_is_cached: 14 takes a queue that was never written for one read from its start (B.9).
        set_zero_if_not_found: 14 knows that request field (B.9).
        stores_offset_moved: each 21 leaves a message in OFFSET_MOVED_EVENT (B.5).
        reset_unknown_topic_code: 222 for a topic this broker does not have (D.10).
        tells_broadcast_on_close: a closed connection is announced to broadcast groups too (B.3).
        stores_topic_order: 17 keeps the ``order`` it is sent.
        slave_rejects_pulls: a slave without ``slaveReadEnable`` answers them 2, where 4.x serves them (B.16).
        slave_commits_pulls: it commits what a pull's commit flag says (B.7).
        slave_sends_back: it sends consumers that keep up to their master (5.3.3 PullMessageProcessor).
        slave_wakes_pulls: it answers held pulls as messages arrive, and not in the 5 s loop only.
        exhausted_queue_ends: a queue without any message left has its minimum at its maximum (B.11).
        dead_letter_perm: permission of a new dead-letter topic (B.1).
        dead_letter_keeps_delay: 36 leaves a dead letter the delay of its last retry (B.13).
        retry_send_keeps_delay: so does a send to a retry topic that ends in the dead-letter topic.
        retry_send_limit_is_exceeded: such a send ends there beyond the limit, not at it.
        retry_send_of_locked_ends: so does every such send of a group whose members hold locks (5.x): it is an
            orderly one, whose listener has given up a message.
        knows_timers: messages may ask for a moment of their own, which this broker refuses.
        delivery_pause: seconds until a delayed message is tried again that could not be stored (B.12).
        filters_texts: SQL92 knows CONTAINS, STARTSWITH and ENDSWITH.
        faq_url: where remarks about missing topics and groups point (docs/spec/nameserver.md A.4).
        half_topic: transaction messages wait in a topic of their own and are asked about; 4.2.0 stores them
            under their own topic, unseen, and never asks (B.14).
        transaction_check_interval: default of that key, ms (B.14).
        half_names_transaction: half messages get their UNIQ_KEY as transaction id.
        op_separator: behind each offset in an op record; 5.x puts several into one.
        tells_pull_offset: 208 and 317 say how far a group has pulled; tools of 5.x count less than nothing in
            flight without it.
        stores_region: messages are stored with MSG_REGION and TRACE_ON.
        stores_wait: messages are stored with the WAIT that their producer gave them.
        names_messages: a message sent alone without UNIQ_KEY gets one; answers to sends name it, or a
            batch's own.
        tells_active: 28 says whether the broker does what only one of its name does; clusterList shows it.
        runtime_queues: queues that 28 lists only in that release.
        late_end_is_refused: 37 that comes after the message's own immunity is left to the check (604).
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
    slave_rejects_pulls: bool = False
    slave_commits_pulls: bool = False
    slave_sends_back: bool = False
    slave_wakes_pulls: bool = False
    exhausted_queue_ends: bool = False
    dead_letter_perm: int = PERM_READ_WRITE
    dead_letter_keeps_delay: bool = False
    retry_send_keeps_delay: bool = True
    retry_send_limit_is_exceeded: bool = False
    retry_send_of_locked_ends: bool = False
    knows_timers: bool = False
    delivery_pause: float = 0.1
    filters_texts: bool = False
    faq_url: str = FAQ_URL
    half_topic: bool = True
    transaction_check_interval: int = 60_000
    half_names_transaction: bool = False
    op_separator: str = ""
    late_end_is_refused: bool = False
    tells_pull_offset: bool = False
    stores_region: bool = False
    stores_wait: bool = False
    names_messages: bool = False
    tells_active: bool = False
    runtime_queues: tuple[str, ...] = ()


_V49: Final = BrokerRules()
RULES: Final = MappingProxyType(
    {
        Profile.V42: replace(
            _V49,
            half_topic=False,
            dead_letter_perm=int(Perm.WRITE),
            dead_letter_keeps_delay=True,
            delivery_pause=10.0,
        ),
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
            retry_send_keeps_delay=False,
            knows_timers=True,
            retry_send_limit_is_exceeded=True,
            retry_send_of_locked_ends=True,
            filters_texts=True,
            slave_rejects_pulls=True,
            slave_commits_pulls=True,
            slave_sends_back=True,
            slave_wakes_pulls=True,
            exhausted_queue_ends=True,
            faq_url=FAQ_URL_5,
            transaction_check_interval=30_000,
            half_names_transaction=True,
            op_separator=",",
            late_end_is_refused=True,
            tells_pull_offset=True,
            stores_region=True,
            stores_wait=True,
            names_messages=True,
            tells_active=True,
            runtime_queues=(
                "ackThreadPoolQueueHeadWaitTimeMills",
                "ackThreadPoolQueueSize",
                "litePullThreadPoolQueueHeadWaitTimeMills",
                "litePullThreadPoolQueueSize",
            ),
        ),
    }
)
