"""Builds the delivery of delayed messages, and loads its progress."""

from __future__ import annotations

from dataclasses import dataclass

from rewindmq.broker.config import BrokerConfig
from rewindmq.broker.delay.delivery import DelayService
from rewindmq.broker.delay.hook import DelayHook
from rewindmq.broker.offsets.delay_offsets import DelayOffsets
from rewindmq.broker.profile import BrokerProfile
from rewindmq.broker.send.appender import MessageAppender
from rewindmq.broker.store.consume_queue.tags_code import DelayLevels
from rewindmq.broker.store.files.disk import Disk
from rewindmq.broker.store.store import MessageStore
from rewindmq.broker.store.tables.config_file import ConfigFile
from rewindmq.protocol.remoting.runtime import Runtime


@dataclass(frozen=True, slots=True)
class Delays:
    """Delayed messages.

    Attributes:
        hook: redirects them to the schedule topic.
        service: delivers them at a master.
        offsets: how far each level is delivered.
    """

    hook: DelayHook
    service: DelayService
    offsets: DelayOffsets


def build(
    runtime: Runtime,
    config: BrokerConfig,
    profile: BrokerProfile,
    disk: Disk,
    store: MessageStore,
    appender: MessageAppender,
) -> Delays:
    """Return hook and service; a master's ``Background`` begins the service.

    Raises:
        StoreError: if the file of the progress cannot be read.
    """
    offsets = DelayOffsets(ConfigFile(config.table_folder / "delayOffset.json", disk))
    offsets.load()
    levels = DelayLevels(config.store.message_delay_level, runtime.clock.scale)
    service = DelayService(
        runtime,
        store,
        appender,
        levels,
        offsets,
        pause=profile.delivery_pause,
        save_seconds=config.flush_delay_offset_interval / 1_000,
    )
    return Delays(DelayHook(levels, service.expect), service, offsets)
