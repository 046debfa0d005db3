"""Behaviour of a client that differs between releases (docs/spec/client.md C and docs/spec/reset.md D.10).

Each difference is an attribute, and each release a ``ClientProfile``. The other modules of ``client/`` read
these attributes and never compare releases.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from rewindmq.client.core.lock_profile import LOCK_PROFILE_4, LOCK_PROFILE_5, LockProfile
from rewindmq.protocol.message.sysflag import COMPRESSION_ZLIB, MessageSysFlag
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.version import MQVersion


@dataclass(frozen=True, slots=True)
class ClientProfile:
    """How a client of one release behaves. Times are protocol seconds.

    Attributes:
        release: the RocketMQ release that the profile imitates or is based on.
        announced_version: ``version`` in every header this client sends (the 4.2.0 release announces 252).
        unique_instance_name: the instance name DEFAULT becomes ``pid#number`` instead of ``pid``, so every
            consumer and producer has a client instance of its own.
        pull_exception_delay: pause of a queue after a failed pull.
        pull_flow_control_delay: pause of a queue after the broker returned FLOW_CONTROL (215).
        illegal_offset_delay: from PULL_OFFSET_MOVED (21) to the correction of the offset; 0 corrects at once.
        freeze_illegal_offset: the corrected offset cannot be changed until the queue is given up.
        illegal_offset_rebalances: the correction wakes the rebalance service.
        serialised_reset: a reset holds the client instance's monitor. Resets run one after another (since
            4.9.0), and a consumer that stops waits for them (since 4.9.1). 4.2.0 to 4.8.0 have no such lock.
        any_error_means_no_offset: any error code of QUERY_CONSUMER_OFFSET (14) counts as "no offset stored",
            not only QUERY_NOT_FOUND (22).
        dispatch_delay: from a rebalance to the first pull of a queue that it added.
        rebalance_min_interval: least time between rebalances, after which an incomplete rebalance is
            repeated. None: no least time and no repetition.
        retry_on_busy: a producer also tries another broker after SYSTEM_BUSY (2) and GO_AWAY (1500).
        compressed_flag: sysFlag bits of a compressed body.
        local_store_keeps_single: the local-file offset store implements persist and remove of one queue.
        offsets_from_any_broker: if the master is unknown, offset queries (14) and commits (15) go to a slave
            at once; otherwise only if the master is still unknown after a refresh of the route.
        consume_thread_max: default of the option with this name.
        lite_pull_request: a lite pull consumer sends LITE_PULL_MESSAGE (361) instead of PULL_MESSAGE (11), as
            since 5.0.0.
        lock_profile: how orderly consumers lock their queues.
        checks_dropped: results of a dropped queue are discarded (guards G2 and G3 of docs/spec/races.md E.2).
        clears_dropped_queue: a reset empties the queues it drops.
        checks_dropped_on_empty_pull: an empty pull moves the offset only if its queue is not dropped (remedy
            F1 of docs/spec/races.md E.18). No release checks it.
        drops_on_apply: a reset's apply pass, after the 10 s wait, also marks each queue as dropped when it
            removes the queue from the table (F2).
        send_back_skips_removed: a failed message that is no longer cached is not sent back.
        cancels_pulls: the outstanding pull of a dropped queue is cancelled, and its answer ignored (F3).
        offset_cell_per_queue_object: an offset changes only if its ProcessQueue is the registered one (F8).
        end_transaction_names_topic: END_TRANSACTION (37) names the topic (5.x).
        knows_epochs: pulls and commits carry the epoch of their deliveries, brokers answer commits, and a
            queue restarts at once after a fenced reset (F12).
    """

    release: Profile
    announced_version: int
    unique_instance_name: bool
    pull_exception_delay: float
    pull_flow_control_delay: float
    illegal_offset_delay: float
    freeze_illegal_offset: bool
    illegal_offset_rebalances: bool
    serialised_reset: bool
    any_error_means_no_offset: bool
    dispatch_delay: float
    rebalance_min_interval: float | None
    retry_on_busy: bool
    compressed_flag: int
    local_store_keeps_single: bool
    offsets_from_any_broker: bool
    consume_thread_max: int
    lite_pull_request: bool = False
    lock_profile: LockProfile = LOCK_PROFILE_4
    checks_dropped: bool = True
    clears_dropped_queue: bool = True
    checks_dropped_on_empty_pull: bool = False
    drops_on_apply: bool = False
    cancels_pulls: bool = False
    send_back_skips_removed: bool = False
    offset_cell_per_queue_object: bool = False
    end_transaction_names_topic: bool = False
    knows_epochs: bool = False


_V49: Final = ClientProfile(
    release=Profile.V49,
    announced_version=int(MQVersion.V4_9_4),
    unique_instance_name=True,
    pull_exception_delay=1.0,
    pull_flow_control_delay=1.0,
    illegal_offset_delay=10.0,
    freeze_illegal_offset=False,
    illegal_offset_rebalances=False,
    serialised_reset=True,
    any_error_means_no_offset=True,
    dispatch_delay=0.0,
    rebalance_min_interval=None,
    retry_on_busy=False,
    compressed_flag=int(MessageSysFlag.COMPRESSED) | COMPRESSION_ZLIB,
    local_store_keeps_single=False,
    offsets_from_any_broker=False,
    consume_thread_max=20,
)
CLIENT_PROFILES: Final = MappingProxyType[Profile, ClientProfile](
    {
        Profile.V42: ClientProfile(
            release=Profile.V42,
            announced_version=int(MQVersion.V4_2_0_SNAPSHOT),
            unique_instance_name=False,
            pull_exception_delay=3.0,
            pull_flow_control_delay=3.0,
            illegal_offset_delay=10.0,
            freeze_illegal_offset=False,
            illegal_offset_rebalances=False,
            serialised_reset=False,
            any_error_means_no_offset=True,
            dispatch_delay=0.0,
            rebalance_min_interval=None,
            retry_on_busy=False,
            compressed_flag=int(MessageSysFlag.COMPRESSED),
            local_store_keeps_single=False,
            offsets_from_any_broker=True,
            consume_thread_max=64,
        ),
        Profile.V49: _V49,
        Profile.V53: ClientProfile(
            release=Profile.V53,
            announced_version=int(MQVersion.V5_3_3),
            unique_instance_name=True,
            pull_exception_delay=1.0,
            pull_flow_control_delay=0.02,
            illegal_offset_delay=0.0,
            freeze_illegal_offset=True,
            illegal_offset_rebalances=True,
            serialised_reset=True,
            any_error_means_no_offset=False,
            dispatch_delay=0.5,
            rebalance_min_interval=1.0,
            retry_on_busy=True,
            compressed_flag=int(MessageSysFlag.COMPRESSED) | COMPRESSION_ZLIB,
            local_store_keeps_single=True,
            offsets_from_any_broker=False,
            consume_thread_max=20,
            lite_pull_request=True,
            lock_profile=LOCK_PROFILE_5,
            end_transaction_names_topic=True,
            send_back_skips_removed=True,
        ),
        Profile.UNGUARDED: replace(_V49, checks_dropped=False, clears_dropped_queue=False),
        Profile.EPOCH: replace(
            _V49,
            lock_profile=LOCK_PROFILE_5,
            drops_on_apply=True,
            cancels_pulls=True,
            offset_cell_per_queue_object=True,
            knows_epochs=True,
        ),
    }
)
