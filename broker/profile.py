"""Differences between the brokers of RocketMQ 4.2.0, 4.9.4 and 5.3.3.

Specification: docs/spec/broker.md B, docs/spec/reset.md D.10.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final

from rewindmq.broker.store.model import SearchMode
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.message.sysflag import PERM_READ_WRITE, Perm
from rewindmq.protocol.names import FAQ_URL, FAQ_URL_5, SYSTEM_TOPICS, SYSTEM_TOPICS_53
from rewindmq.protocol.profile import Profile


@dataclass(frozen=True, slots=True)
class BrokerProfile:
    """The behaviour of one release's broker, where releases differ.

    Sections such as B.4 are in docs/spec/broker.md.

    Attributes:
        bad_queue_code: code for a pull or send whose queue id is out of range (B.4), and for a send to a
            topic with an invalid name.
        search_mode: how a search by time finds the offset (B.10).
        commit_is_checked: UPDATE_CONSUMER_OFFSET (15) requires a known group and topic (B.8).
        absent_entry_is_cached: QUERY_CONSUMER_OFFSET (14) returns 0 for a queue that was never written (B.9).
        set_zero_if_not_found: QUERY_CONSUMER_OFFSET (14) supports the field ``setZeroIfNotFound`` (B.9).
        stores_offset_moved: each pull that fails with PULL_OFFSET_MOVED (21) because its offset is out of
            range stores a message in OFFSET_MOVED_EVENT (B.5).
        reset_unknown_topic_code: code of a reset in an unknown topic (D.10).
        notifies_broadcast_on_close: the broker announces a closed connection to broadcast groups, too (B.3).
        stores_topic_order: UPDATE_AND_CREATE_TOPIC (17) stores ``order``.
        knows_attributes: UPDATE_AND_CREATE_TOPIC (17) checks and stores attributes. Other releases ignore all
            except ``cleanup.policy``.
        slave_rejects_pulls: a slave without ``slaveReadEnable`` refuses pulls with SYSTEM_BUSY (2); in 4.x it
            serves them (B.16).
        slave_commits_pulls: a slave stores the offset that a pull commits (B.7).
        slave_sends_back: a slave directs the next pull of a consumer that is not far behind to the master
            (5.3.3 PullMessageProcessor).
        slave_wakes_pulls: at a slave, arriving messages wake suspended pulls; otherwise only the 5 s loop
            does.
        exhausted_queue_ends: the minimum offset of a queue whose messages have all expired becomes its
            maximum (B.11).
        offsets_go_with_topic: DELETE_TOPIC_IN_BROKER (215) removes the groups' offsets in the topic, since
            5.0.0. A slave then has the offsets of its master only.
        dead_letter_perm: permission of a new dead-letter topic (B.1).
        dead_letter_keeps_delay: a dead letter that CONSUMER_SEND_MSG_BACK (36) stores keeps the delay of its
            last retry (B.13).
        retry_send_keeps_delay: a dead letter that a send to a retry topic stores keeps its delay.
        retry_send_limit_is_exceeded: a send to a retry topic becomes a dead letter when its reconsumeTimes
            exceed the limit; otherwise already when they reach it.
        retry_send_of_locked_ends: a send to a retry topic becomes a dead letter at once if a consumer of the
            group holds a queue lock. 5.x assumes that an orderly consumer has given up the message.
        batch_records_are_limited: ``maxMessageSize`` limits the records of a batch, too (4.2.0
            ``MessageExtBatchEncoder``); later only the batch as it is sent.
        knows_timers: the release has timer messages.
        writes_v2: a topic of 128 to 255 bytes, such as a POP retry topic, gets a V2 record.
        delivery_pause: seconds until the next try to store a delayed message (B.12).
        filters_texts: SQL92 knows CONTAINS, STARTSWITH and ENDSWITH.
        system_topics: names that applications must not use for topics: 5.3.3 has CHECKPOINT_TOPIC, too.
        faq_url: the link in remarks about missing topics and groups (docs/spec/nameserver.md A.4).
        half_topic: half messages wait in RMQ_SYS_TRANS_HALF_TOPIC, and the broker checks their transactions.
            4.2.0 stores them under their real topic, but in no queue, and never checks them (B.14).
        transaction_check_interval: default of the key ``transactionCheckInterval``, ms (B.14).
        half_names_transaction: a half message gets its UNIQ_KEY as transaction id.
        op_separator: text after each offset in an op record; 5.x puts several offsets into one record.
        reports_pull_offset: GET_CONSUME_STATS (208) and GET_BROKER_CONSUME_STATS (317) return a pull offset.
            Without it, 5.x tools show a negative number of messages in flight.
        stores_region: messages are stored with MSG_REGION and TRACE_ON.
        stores_wait: messages are stored with their producer's WAIT property.
        ends_properties: the properties of a record end with a separator (5.3.3
            ``MessageDecoder#messageProperties2String``; 5.1.0 still removes it).
        registers_changes: the broker registers changed topics alone, whether a request, a send or a heartbeat
            has changed them. 4.9.7 does so for UPDATE_AND_CREATE_TOPIC (17) only.
        adds_unique_key: a single message without UNIQ_KEY gets one. The response to a send has the UNIQ_KEY
            of the message or of the batch.
        reports_active: GET_BROKER_RUNTIME_INFO (28) has ``brokerActive``, which clusterList shows.
        runtime_extras: keys of GET_BROKER_RUNTIME_INFO (28) that only this release has, about thread pools,
            with their fixed values.
        counts_transactions: a topic's statistics count its committed messages. The half topic's statistics
            count half messages that the broker stores again, and the op topic's statistics count op records.
        adds_stats: VIEW_BROKER_STATS_DATA (315) has statistics of connections, of heartbeats and of messages
            outside system topics.
        deletes_stats: default of the key ``autoDeleteUnusedStats``.
        late_end_is_refused: END_TRANSACTION (37) after the message's own immunity time fails with
            ILLEGAL_OPERATION (604).
    """

    bad_queue_code: ResponseCode = ResponseCode.SYSTEM_ERROR
    search_mode: SearchMode = SearchMode.NEAREST
    commit_is_checked: bool = False
    absent_entry_is_cached: bool = True
    set_zero_if_not_found: bool = False
    stores_offset_moved: bool = True
    reset_unknown_topic_code: ResponseCode = ResponseCode.SYSTEM_ERROR
    notifies_broadcast_on_close: bool = True
    stores_topic_order: bool = False
    knows_attributes: bool = False
    slave_rejects_pulls: bool = False
    slave_commits_pulls: bool = False
    slave_sends_back: bool = False
    slave_wakes_pulls: bool = False
    exhausted_queue_ends: bool = False
    offsets_go_with_topic: bool = False
    dead_letter_perm: int = PERM_READ_WRITE
    dead_letter_keeps_delay: bool = False
    retry_send_keeps_delay: bool = True
    retry_send_limit_is_exceeded: bool = False
    retry_send_of_locked_ends: bool = False
    batch_records_are_limited: bool = False
    knows_timers: bool = False
    writes_v2: bool = False
    delivery_pause: float = 0.1
    filters_texts: bool = False
    system_topics: frozenset[str] = SYSTEM_TOPICS
    faq_url: str = FAQ_URL
    half_topic: bool = True
    transaction_check_interval: int = 60_000
    half_names_transaction: bool = False
    op_separator: str = ""
    counts_transactions: bool = False
    adds_stats: bool = False
    deletes_stats: bool = False
    late_end_is_refused: bool = False
    reports_pull_offset: bool = False
    stores_region: bool = False
    stores_wait: bool = False
    ends_properties: bool = False
    registers_changes: bool = False
    adds_unique_key: bool = False
    reports_active: bool = False
    runtime_extras: Mapping[str, str] = field(default_factory=dict)


_V49: Final = BrokerProfile()
PROFILES: Final = MappingProxyType(
    {
        Profile.V42: replace(
            _V49,
            half_topic=False,
            batch_records_are_limited=True,
            dead_letter_perm=int(Perm.WRITE),
            dead_letter_keeps_delay=True,
            delivery_pause=10.0,
        ),
        Profile.V49: _V49,
        Profile.V53: BrokerProfile(
            bad_queue_code=ResponseCode.INVALID_PARAMETER,
            search_mode=SearchMode.BOUNDARY,
            commit_is_checked=True,
            absent_entry_is_cached=False,
            set_zero_if_not_found=True,
            stores_offset_moved=False,
            reset_unknown_topic_code=ResponseCode.TOPIC_NOT_EXIST,
            notifies_broadcast_on_close=False,
            stores_topic_order=True,
            knows_attributes=True,
            retry_send_keeps_delay=False,
            knows_timers=True,
            writes_v2=True,
            retry_send_limit_is_exceeded=True,
            retry_send_of_locked_ends=True,
            filters_texts=True,
            slave_rejects_pulls=True,
            slave_commits_pulls=True,
            slave_sends_back=True,
            slave_wakes_pulls=True,
            exhausted_queue_ends=True,
            offsets_go_with_topic=True,
            system_topics=SYSTEM_TOPICS_53,
            faq_url=FAQ_URL_5,
            transaction_check_interval=30_000,
            half_names_transaction=True,
            op_separator=",",
            counts_transactions=True,
            adds_stats=True,
            deletes_stats=True,
            late_end_is_refused=True,
            reports_pull_offset=True,
            stores_region=True,
            stores_wait=True,
            ends_properties=True,
            registers_changes=True,
            adds_unique_key=True,
            reports_active=True,
            runtime_extras=MappingProxyType(
                {
                    "ackThreadPoolQueueCapacity": "100000",
                    "ackThreadPoolQueueHeadWaitTimeMills": "0",
                    "ackThreadPoolQueueSize": "0",
                    "litePullThreadPoolQueueCapacity": "100000",
                    "litePullThreadPoolQueueHeadWaitTimeMills": "0",
                    "litePullThreadPoolQueueSize": "0",
                }
            ),
        ),
    }
)
