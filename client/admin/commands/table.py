"""The table of commands, in the order they are listed."""

from __future__ import annotations

from typing import Final

from rewindmq.client.admin.commands import (
    clone_group_offset,
    cluster_list,
    consumer_connection,
    consumer_progress,
    consumer_status,
    fenced_commits,
    get_broker_config,
    get_consumer_status,
    query_msg_by_id,
    query_msg_by_key,
    query_msg_by_offset,
    query_msg_by_unique_key,
    query_msg_trace_by_id,
    reset_offset_by_time,
    skip_accumulated_message,
    topic_list,
    topic_route,
    topic_status,
    update_broker_config,
    update_topic,
    update_topic_perm,
)

COMMANDS: Final = (
    cluster_list.COMMAND,
    update_topic.COMMAND,
    update_topic_perm.COMMAND,
    topic_list.COMMAND,
    topic_route.COMMAND,
    topic_status.COMMAND,
    consumer_progress.COMMAND,
    consumer_connection.COMMAND,
    consumer_status.COMMAND,
    get_consumer_status.COMMAND,
    reset_offset_by_time.COMMAND,
    skip_accumulated_message.COMMAND,
    clone_group_offset.COMMAND,
    fenced_commits.COMMAND,
    query_msg_by_key.COMMAND,
    query_msg_by_unique_key.COMMAND,
    query_msg_by_id.COMMAND,
    query_msg_by_offset.COMMAND,
    query_msg_trace_by_id.COMMAND,
    get_broker_config.COMMAND,
    update_broker_config.COMMAND,
)
