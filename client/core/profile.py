"""What a client does differently from release to release (docs/spec/client.md C and docs/spec/reset.md D.10).

One attribute per difference, one ``ClientProfile`` per release. The rest of this package asks for no release.
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
        release: the RocketMQ release that is imitated, or that the profile is made from.
        announced_version: ``version`` in every header this client sends (the 4.2.0 release announces 252).
        unique_instance_name: the instance name DEFAULT becomes ``pid#number`` instead of ``pid``, so every
            consumer and producer has a client instance of its own.
        pull_exception_delay: pause of a queue after a failed pull.
        pull_flow_control_delay: the same after code 215.
        illegal_offset_delay: from the answer 21 to the correction of the offset; 0: at once.
        freeze_illegal_offset: the corrected offset cannot be changed until the queue is given up.
        illegal_offset_rebalances: the correction wakes the rebalance service.
        serialised_reset: a reset holds the client instance's monitor, so resets run one after another and
            a consumer that stops waits for them (4.9.0 and 4.9.1; RocketMQ 4.2.0 has no such lock).
        any_error_means_no_offset: any error answer to code 14 counts as "no offset stored", not only 22.
        dispatch_delay: from a rebalance to the first pull of a queue it added.
        rebalance_min_interval: rebalances keep this apart, and one that left something undone is repeated
            after it; None: neither.
        retry_on_busy: a producer tries another broker after codes 2 and 1500 too.
        compressed_flag: sysFlag bits of a compressed body.
        local_store_keeps_single: the local-file offset store implements persist and remove of one queue.
        offsets_from_any_broker: codes 14 and 15 go to the first known broker id, not to the master.
        consume_thread_max: default of that option.
        lite_pull_request: a lite pull consumer pulls with 361 instead of 11 (5.0.0).
        lock_profile: what orderly consumers do about the locks of their queues.
        checks_dropped: results of a dropped queue are discarded (guards G2 and G3 of docs/spec/races.md E.2).
        clears_dropped_queue: a reset empties the queues it drops.
        checks_dropped_on_empty_pull: an empty pull's answer moves the offset only while the queue is not
            dropped (fix F1 of E.18); no release looks.
        drops_on_apply: a queue that leaves the table is marked dropped, by the apply pass too (F2).
        send_back_skips_removed: a failed message that is no longer cached is not sent back.
        cancels_pulls: a dropped queue's outstanding pull is let go of, and what it brings ignored (F3).
        offset_cell_per_queue_object: progress counts only while its ProcessQueue is the registered one (F8).
        ends_name_topic: 37 names the topic (5.x).
        knows_epochs: pulls and commits carry the epoch of their deliveries, commits are answered, and a
            fenced queue begins again at once (F12).
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
    ends_name_topic: bool = False
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
            ends_name_topic=True,
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
