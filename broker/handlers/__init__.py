"""One module per request code; each says in its docstring what of RocketMQ is kept, changed or refused."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import MappingProxyType
from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.broker.handlers import (
    check_client_config,
    clean_expired_consume_queue,
    clean_unused_topic,
    clone_group_offset,
    consume_message_directly,
    consumer_send_msg_back,
    delete_expired_commit_log,
    delete_subscription_group,
    delete_topic_in_broker,
    end_transaction,
    get_all_consumer_offset,
    get_all_delay_offset,
    get_all_producer_info,
    get_all_subscription_group_config,
    get_all_topic_config,
    get_broker_config,
    get_broker_consume_stats,
    get_broker_runtime_info,
    get_consume_stats,
    get_consumer_connection_list,
    get_consumer_list_by_group,
    get_consumer_running_info,
    get_earliest_msg_storetime,
    get_max_offset,
    get_min_offset,
    get_producer_connection_list,
    get_subscription_group_config,
    get_system_topic_list_from_broker,
    get_topic_config,
    get_topic_stats_info,
    heart_beat,
    invoke_broker_to_get_consumer_status,
    invoke_broker_to_reset_offset,
    list_fenced_commits,
    lite_pull_message,
    lock_batch_mq,
    pull_message,
    query_consume_queue,
    query_consume_time_span,
    query_consumer_offset,
    query_message,
    query_topic_consume_by_who,
    search_offset_by_timestamp,
    send_batch_message,
    send_message,
    send_message_v2,
    unlock_batch_mq,
    unregister_client,
    update_and_create_subscription_group,
    update_and_create_topic,
    update_broker_config,
    update_consumer_offset,
    view_message_by_id,
)
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.remoting.connection import Connection, Handler, Reply

BrokerHandler = Callable[[BrokerContext, Connection, RemotingCommand], Reply]

HANDLERS: Final = MappingProxyType[RequestCode, BrokerHandler](
    {
        RequestCode.SEND_MESSAGE: send_message.handle,
        RequestCode.PULL_MESSAGE: pull_message.handle,
        RequestCode.QUERY_MESSAGE: query_message.handle,
        RequestCode.QUERY_CONSUMER_OFFSET: query_consumer_offset.handle,
        RequestCode.UPDATE_CONSUMER_OFFSET: update_consumer_offset.handle,
        RequestCode.END_TRANSACTION: end_transaction.handle,
        RequestCode.UPDATE_AND_CREATE_TOPIC: update_and_create_topic.handle,
        RequestCode.GET_ALL_TOPIC_CONFIG: get_all_topic_config.handle,
        RequestCode.GET_BROKER_RUNTIME_INFO: get_broker_runtime_info.handle,
        RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: search_offset_by_timestamp.handle,
        RequestCode.GET_MAX_OFFSET: get_max_offset.handle,
        RequestCode.GET_MIN_OFFSET: get_min_offset.handle,
        RequestCode.GET_EARLIEST_MSG_STORETIME: get_earliest_msg_storetime.handle,
        RequestCode.VIEW_MESSAGE_BY_ID: view_message_by_id.handle,
        RequestCode.HEART_BEAT: heart_beat.handle,
        RequestCode.CONSUMER_SEND_MSG_BACK: consumer_send_msg_back.handle,
        RequestCode.UNREGISTER_CLIENT: unregister_client.handle,
        RequestCode.GET_CONSUMER_LIST_BY_GROUP: get_consumer_list_by_group.handle,
        RequestCode.GET_ALL_CONSUMER_OFFSET: get_all_consumer_offset.handle,
        RequestCode.GET_ALL_DELAY_OFFSET: get_all_delay_offset.handle,
        RequestCode.LOCK_BATCH_MQ: lock_batch_mq.handle,
        RequestCode.UNLOCK_BATCH_MQ: unlock_batch_mq.handle,
        RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: update_and_create_subscription_group.handle,
        RequestCode.DELETE_SUBSCRIPTIONGROUP: delete_subscription_group.handle,
        RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: get_all_subscription_group_config.handle,
        RequestCode.GET_TOPIC_STATS_INFO: get_topic_stats_info.handle,
        RequestCode.GET_CONSUMER_CONNECTION_LIST: get_consumer_connection_list.handle,
        RequestCode.GET_CONSUME_STATS: get_consume_stats.handle,
        RequestCode.INVOKE_BROKER_TO_RESET_OFFSET: invoke_broker_to_reset_offset.handle,
        RequestCode.QUERY_TOPIC_CONSUME_BY_WHO: query_topic_consume_by_who.handle,
        RequestCode.SEND_MESSAGE_V2: send_message_v2.handle,
        RequestCode.SEND_BATCH_MESSAGE: send_batch_message.handle,
        RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS: invoke_broker_to_get_consumer_status.handle,
        RequestCode.GET_CONSUMER_RUNNING_INFO: get_consumer_running_info.handle,
        RequestCode.CONSUME_MESSAGE_DIRECTLY: consume_message_directly.handle,
        RequestCode.CLONE_GROUP_OFFSET: clone_group_offset.handle,
        RequestCode.UPDATE_BROKER_CONFIG: update_broker_config.handle,
        RequestCode.GET_BROKER_CONFIG: get_broker_config.handle,
        RequestCode.DELETE_TOPIC_IN_BROKER: delete_topic_in_broker.handle,
        RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE: clean_expired_consume_queue.handle,
        RequestCode.CLEAN_UNUSED_TOPIC: clean_unused_topic.handle,
        RequestCode.DELETE_EXPIRED_COMMITLOG: delete_expired_commit_log.handle,
        RequestCode.CHECK_CLIENT_CONFIG: check_client_config.handle,
        RequestCode.LITE_PULL_MESSAGE: lite_pull_message.handle,
        RequestCode.GET_ALL_PRODUCER_INFO: get_all_producer_info.handle,
        RequestCode.GET_BROKER_CONSUME_STATS: get_broker_consume_stats.handle,
        RequestCode.GET_PRODUCER_CONNECTION_LIST: get_producer_connection_list.handle,
        RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG: get_subscription_group_config.handle,
        RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER: get_system_topic_list_from_broker.handle,
        RequestCode.GET_TOPIC_CONFIG: get_topic_config.handle,
        RequestCode.QUERY_CONSUME_QUEUE: query_consume_queue.handle,
        RequestCode.QUERY_CONSUME_TIME_SPAN: query_consume_time_span.handle,
        RequestCode.LIST_FENCED_COMMITS: list_fenced_commits.handle,
    }
)


def bind_handlers(context: BrokerContext) -> dict[int, Handler]:
    """The table a server dispatches by; codes outside it are answered 3."""
    return {code: partial(handler, context) for code, handler in HANDLERS.items()}
