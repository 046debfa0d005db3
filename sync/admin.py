"""The synchronous admin client."""

from __future__ import annotations

from typing import Any

from rewindmq.client.admin.admin_client import AdminClient as AsyncAdminClient
from rewindmq.client.admin.brokers import BrokerAdmin
from rewindmq.client.admin.groups import GroupAdmin
from rewindmq.client.admin.messages import MessageAdmin
from rewindmq.client.admin.resets import ResetAdmin
from rewindmq.client.admin.topics import TopicAdmin
from rewindmq.sync.background_loop import BackgroundLoop
from rewindmq.sync.blocking import SyncClient, blocking, on_loop, takes_options_of


class _Part:
    """A part of the client; its methods wait for those of the asynchronous client's part."""

    def __init__(self, loop: BackgroundLoop, client: Any) -> None:
        self._loop = loop
        self.client = client


class _Topics(_Part):
    fetch_all_topic_list = blocking(TopicAdmin.fetch_all_topic_list)
    create_and_update_topic_config = blocking(TopicAdmin.create_and_update_topic_config)
    create_or_update_order_conf = blocking(TopicAdmin.create_or_update_order_conf)
    examine_topic_stats = blocking(TopicAdmin.examine_topic_stats)
    broker_topic_stats = blocking(TopicAdmin.broker_topic_stats)
    examine_topic_route_info = blocking(TopicAdmin.examine_topic_route_info)
    delete_topic = blocking(TopicAdmin.delete_topic)
    broker_topics = blocking(TopicAdmin.broker_topics)


class _Groups(_Part):
    consumer_groups = blocking(GroupAdmin.consumer_groups)
    examine_consume_stats = blocking(GroupAdmin.examine_consume_stats)
    broker_group_stats = blocking(GroupAdmin.broker_group_stats)
    topic_consume_stats = blocking(GroupAdmin.topic_consume_stats)
    stored_offset = blocking(GroupAdmin.stored_offset)
    stored_record = blocking(GroupAdmin.stored_record)
    examine_consumer_connection_info = blocking(GroupAdmin.examine_consumer_connection_info)
    set_message_request_mode = blocking(GroupAdmin.set_message_request_mode)
    query_topic_consume_by_who = blocking(GroupAdmin.query_topic_consume_by_who)
    broker_topic_groups = blocking(GroupAdmin.broker_topic_groups)
    create_and_update_subscription_group_config = blocking(
        GroupAdmin.create_and_update_subscription_group_config
    )
    delete_subscription_group = blocking(GroupAdmin.delete_subscription_group)
    subscription_groups = blocking(GroupAdmin.subscription_groups)
    broker_consume_stats = blocking(GroupAdmin.broker_consume_stats)
    broker_consumer_offsets = blocking(GroupAdmin.broker_consumer_offsets)
    broker_consume_time_span = blocking(GroupAdmin.broker_consume_time_span)
    get_consumer_running_info = blocking(GroupAdmin.get_consumer_running_info)
    get_consumer_status = blocking(GroupAdmin.get_consumer_status)
    consume_message_directly = blocking(GroupAdmin.consume_message_directly)


class _Messages(_Part):
    view_message = blocking(MessageAdmin.view_message)
    message_at = blocking(MessageAdmin.message_at)
    pull_messages = blocking(MessageAdmin.pull_messages)
    peek_messages = blocking(MessageAdmin.peek_messages)
    first_message_offset = blocking(MessageAdmin.first_message_offset)
    query_message = blocking(MessageAdmin.query_message)
    query_message_by_unique_key = blocking(MessageAdmin.query_message_by_unique_key)
    query_message_at = blocking(MessageAdmin.query_message_at)
    search_offset = blocking(MessageAdmin.search_offset)
    max_offset = blocking(MessageAdmin.max_offset)
    min_offset = blocking(MessageAdmin.min_offset)
    query_message_trace = blocking(MessageAdmin.query_message_trace)


class _Resets(_Part):
    reset = blocking(ResetAdmin.reset)
    reset_groups = blocking(ResetAdmin.reset_groups)
    reset_queue = blocking(ResetAdmin.reset_queue)
    reset_queue_as_5x = blocking(ResetAdmin.reset_queue_as_5x)
    clone_group_offset = blocking(ResetAdmin.clone_group_offset)
    fenced_commits = blocking(ResetAdmin.fenced_commits)
    broker_rewinds = blocking(ResetAdmin.broker_rewinds)


class _Brokers(_Part):
    master_addresses = blocking(BrokerAdmin.master_addresses)
    examine_broker_cluster_info = blocking(BrokerAdmin.examine_broker_cluster_info)
    fetch_broker_runtime_stats = blocking(BrokerAdmin.fetch_broker_runtime_stats)
    view_broker_stats_data = blocking(BrokerAdmin.view_broker_stats_data)
    get_broker_config = blocking(BrokerAdmin.get_broker_config)
    update_broker_config = blocking(BrokerAdmin.update_broker_config)
    wipe_write_perm_of_broker = blocking(BrokerAdmin.wipe_write_perm_of_broker)
    add_write_perm_of_broker = blocking(BrokerAdmin.add_write_perm_of_broker)
    clean_expired_consume_queue = blocking(BrokerAdmin.clean_expired_consume_queue)
    delete_expired_commit_log = blocking(BrokerAdmin.delete_expired_commit_log)
    clean_unused_topic = blocking(BrokerAdmin.clean_unused_topic)
    broker_producers = blocking(BrokerAdmin.broker_producers)


class AdminClient(SyncClient):
    """Examines and changes a cluster; see ``rewindmq.AdminClient``."""

    @takes_options_of(AsyncAdminClient)
    def __init__(self, *args: Any, **options: Any) -> None:
        self._wrap(AsyncAdminClient, *args, **options)
        self.topics = _Topics(self._loop, self.client.topics)
        self.groups = _Groups(self._loop, self.client.groups)
        self.messages = _Messages(self._loop, self.client.messages)
        self.resets = _Resets(self._loop, self.client.resets)
        self.brokers = _Brokers(self._loop, self.client.brokers)

    parse_timestamp = on_loop(AsyncAdminClient.parse_timestamp)

    @property
    def namesrv_addresses(self) -> tuple[str, ...]:
        """``host:port`` of each name server."""
        return tuple(self.client.namesrv_addresses)
