"""One module per request code; each says in its docstring what of RocketMQ is kept, changed or refused."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from rewindmq.namesrv.context import NamesrvContext
from rewindmq.namesrv.handlers import (
    add_write_perm_of_broker,
    delete_kv_config,
    delete_topic_in_namesrv,
    get_all_topic_list,
    get_broker_cluster_info,
    get_kv_config,
    get_kv_list_by_namespace,
    get_namesrv_config,
    get_route_info_by_topic,
    get_system_topic_list,
    get_topics_by_cluster,
    put_kv_config,
    query_data_version,
    register_broker,
    unregister_broker,
    update_namesrv_config,
    wipe_write_perm_of_broker,
)
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.remoting.connection import Connection

NamesrvHandler = Callable[[NamesrvContext, Connection, RemotingCommand], RemotingCommand]

HANDLERS: Final[dict[RequestCode, NamesrvHandler]] = {
    RequestCode.PUT_KV_CONFIG: put_kv_config.handle,
    RequestCode.GET_KV_CONFIG: get_kv_config.handle,
    RequestCode.DELETE_KV_CONFIG: delete_kv_config.handle,
    RequestCode.REGISTER_BROKER: register_broker.handle,
    RequestCode.UNREGISTER_BROKER: unregister_broker.handle,
    RequestCode.GET_ROUTEINFO_BY_TOPIC: get_route_info_by_topic.handle,
    RequestCode.GET_BROKER_CLUSTER_INFO: get_broker_cluster_info.handle,
    RequestCode.WIPE_WRITE_PERM_OF_BROKER: wipe_write_perm_of_broker.handle,
    RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER: get_all_topic_list.handle,
    RequestCode.DELETE_TOPIC_IN_NAMESRV: delete_topic_in_namesrv.handle,
    RequestCode.GET_KVLIST_BY_NAMESPACE: get_kv_list_by_namespace.handle,
    RequestCode.GET_TOPICS_BY_CLUSTER: get_topics_by_cluster.handle,
    RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS: get_system_topic_list.handle,
    RequestCode.UPDATE_NAMESRV_CONFIG: update_namesrv_config.handle,
    RequestCode.GET_NAMESRV_CONFIG: get_namesrv_config.handle,
    RequestCode.QUERY_DATA_VERSION: query_data_version.handle,
    RequestCode.ADD_WRITE_PERM_OF_BROKER: add_write_perm_of_broker.handle,
}


def bind_handlers(
    context: NamesrvContext,
) -> dict[int, Callable[[Connection, RemotingCommand], RemotingCommand]]:
    """The table a server dispatches by; codes outside it are answered 3."""
    return {code: partial(handler, context) for code, handler in HANDLERS.items()}
