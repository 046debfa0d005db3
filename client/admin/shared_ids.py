"""Client ids that several consumers of a group have, and what that means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rewindmq.protocol.body.connection import ConsumerConnection
from rewindmq.protocol.body.heartbeat import MessageModel

# Addresses that a sentence names.
_MAX_SHOWN: Final = 5


def shared_client_ids(connection: ConsumerConnection) -> dict[str, list[str]]:
    """Return the client ids that several connections of one broker have, with the connections' addresses.

    Broadcasting consumers of one machine have one id by default. They divide no queues, so none is returned.
    """
    if connection.message_model is MessageModel.BROADCASTING:
        return {}
    addresses: dict[str, list[str]] = {}
    for client in connection.connection_set:
        addresses.setdefault(client.client_id, []).append(client.client_addr)
    return {client_id: sorted(found) for client_id, found in sorted(addresses.items()) if len(found) > 1}


def shared_id_warnings(connection: ConsumerConnection) -> list[str]:
    """Return a sentence for each client id that several connections have."""
    return [shared_id_warning(client_id, found) for client_id, found in shared_client_ids(connection).items()]


def shared_id_warning(client_id: str, addresses: Sequence[str]) -> str:
    """Return what it means that these addresses have one client id, and what to do."""
    shown = ", ".join(addresses[:_MAX_SHOWN])
    if len(addresses) > _MAX_SHOWN:
        shown += f" and {len(addresses) - _MAX_SHOWN} more"
    return (
        f"{len(addresses)} consumers have the client id {client_id} ({shown}): they consume the same"
        " messages, and leave other queues to no consumer; give each an instance name of its own (a consumer"
        " that has just connected again shows this for up to 120 s)"
    )
