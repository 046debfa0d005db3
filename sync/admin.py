"""The synchronous admin client."""

from __future__ import annotations

from typing import Any

from rewindmq.client.admin.admin_client import AdminClient as AsyncAdminClient
from rewindmq.sync.blocking import SyncClient, blocking, on_loop, takes_options_of


class AdminClient(SyncClient):
    """Examines and changes a cluster; see ``rewindmq.AdminClient``."""

    @takes_options_of(AsyncAdminClient)
    def __init__(self, *args: Any, **options: Any) -> None:
        self._wrap(AsyncAdminClient, *args, **options)

    parse_timestamp = on_loop(AsyncAdminClient.parse_timestamp)
    fetch_all_topic_list = blocking(AsyncAdminClient.fetch_all_topic_list)
    create_and_update_topic_config = blocking(AsyncAdminClient.create_and_update_topic_config)
    create_or_update_order_conf = blocking(AsyncAdminClient.create_or_update_order_conf)
    master_addresses = blocking(AsyncAdminClient.master_addresses)
    examine_topic_stats = blocking(AsyncAdminClient.examine_topic_stats)
    examine_topic_route_info = blocking(AsyncAdminClient.examine_topic_route_info)
    delete_topic = blocking(AsyncAdminClient.delete_topic)
    examine_broker_cluster_info = blocking(AsyncAdminClient.examine_broker_cluster_info)
    fetch_broker_runtime_stats = blocking(AsyncAdminClient.fetch_broker_runtime_stats)
    get_broker_config = blocking(AsyncAdminClient.get_broker_config)
    update_broker_config = blocking(AsyncAdminClient.update_broker_config)
    wipe_write_perm_of_broker = blocking(AsyncAdminClient.wipe_write_perm_of_broker)
    add_write_perm_of_broker = blocking(AsyncAdminClient.add_write_perm_of_broker)
    clean_expired_consume_queue = blocking(AsyncAdminClient.clean_expired_consume_queue)
    delete_expired_commit_log = blocking(AsyncAdminClient.delete_expired_commit_log)
    clean_unused_topic = blocking(AsyncAdminClient.clean_unused_topic)
    consumer_groups = blocking(AsyncAdminClient.consumer_groups)
    examine_consume_stats = blocking(AsyncAdminClient.examine_consume_stats)
    examine_consumer_connection_info = blocking(AsyncAdminClient.examine_consumer_connection_info)
    query_topic_consume_by_who = blocking(AsyncAdminClient.query_topic_consume_by_who)
    create_and_update_subscription_group_config = blocking(
        AsyncAdminClient.create_and_update_subscription_group_config
    )
    delete_subscription_group = blocking(AsyncAdminClient.delete_subscription_group)
    topic_consume_stats = blocking(AsyncAdminClient.topic_consume_stats)
    set_message_request_mode = blocking(AsyncAdminClient.set_message_request_mode)
    peek_messages = blocking(AsyncAdminClient.peek_messages)
    stored_offset = blocking(AsyncAdminClient.stored_offset)
    stored_record = blocking(AsyncAdminClient.stored_record)
    first_message_offset = blocking(AsyncAdminClient.first_message_offset)
    subscription_groups = blocking(AsyncAdminClient.subscription_groups)
    get_consumer_running_info = blocking(AsyncAdminClient.get_consumer_running_info)
    get_consumer_status = blocking(AsyncAdminClient.get_consumer_status)
    consume_message_directly = blocking(AsyncAdminClient.consume_message_directly)
    clone_group_offset = blocking(AsyncAdminClient.clone_group_offset)
    reset_groups = blocking(AsyncAdminClient.reset_groups)
    reset_or_write = blocking(AsyncAdminClient.reset_or_write)
    reset_to_offsets = blocking(AsyncAdminClient.reset_to_offsets)
    write_offsets = blocking(AsyncAdminClient.write_offsets)
    reset_offset_by_timestamp = blocking(AsyncAdminClient.reset_offset_by_timestamp)
    reset_offset_of_queue = blocking(AsyncAdminClient.reset_offset_of_queue)
    reset_offset_by_timestamp_old = blocking(AsyncAdminClient.reset_offset_by_timestamp_old)
    reset_queue_as_5x = blocking(AsyncAdminClient.reset_queue_as_5x)
    fenced_commits = blocking(AsyncAdminClient.fenced_commits)
    query_message_trace = blocking(AsyncAdminClient.query_message_trace)
    view_message = blocking(AsyncAdminClient.view_message)
    message_at = blocking(AsyncAdminClient.message_at)
    query_message_at = blocking(AsyncAdminClient.query_message_at)
    pull_messages = blocking(AsyncAdminClient.pull_messages)
    query_message = blocking(AsyncAdminClient.query_message)
    query_message_by_unique_key = blocking(AsyncAdminClient.query_message_by_unique_key)
    search_offset = blocking(AsyncAdminClient.search_offset)
    max_offset = blocking(AsyncAdminClient.max_offset)
    min_offset = blocking(AsyncAdminClient.min_offset)
    view_broker_stats_data = blocking(AsyncAdminClient.view_broker_stats_data)
    broker_topic_stats = blocking(AsyncAdminClient.broker_topic_stats)
    broker_topic_groups = blocking(AsyncAdminClient.broker_topic_groups)
    broker_rewinds = blocking(AsyncAdminClient.broker_rewinds)
    broker_group_stats = blocking(AsyncAdminClient.broker_group_stats)
    broker_topics = blocking(AsyncAdminClient.broker_topics)
    broker_consume_stats = blocking(AsyncAdminClient.broker_consume_stats)
    broker_producers = blocking(AsyncAdminClient.broker_producers)
    broker_consumer_offsets = blocking(AsyncAdminClient.broker_consumer_offsets)
    broker_consume_time_span = blocking(AsyncAdminClient.broker_consume_time_span)

    @property
    def namesrv_addresses(self) -> tuple[str, ...]:
        """``host:port`` of each name server."""
        return tuple(self.client.namesrv_addresses)
