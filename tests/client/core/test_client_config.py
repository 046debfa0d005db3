"""Client ids, and where a client's settings come from."""

from __future__ import annotations

import pytest

from rewindmq.client.core.client_config import make_config
from rewindmq.protocol.profile import Profile
from rewindmq.race.sim import World

ADDRESS = "127.0.0.1:9876"


def test_client_ids() -> None:
    config = make_config(ADDRESS, instance_name="x", unit_name="u", client_ip="10.0.0.1")
    assert config.client_id == "10.0.0.1@x@u"
    runtime = World().runtime()
    by_profile = {
        profile: [make_config(ADDRESS, profile=profile).with_own_instance_name(runtime) for _ in range(2)]
        for profile in Profile
    }
    assert by_profile[Profile.V42][0].client_id == by_profile[Profile.V42][1].client_id
    for profile in (Profile.V49, Profile.V53):
        assert by_profile[profile][0].client_id != by_profile[profile][1].client_id
        assert "#" in by_profile[profile][0].client_id


def test_name_servers_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NAMESRV_ADDR", "a:1; b:2;")
    assert make_config(None).namesrv_addrs == ("a:1", "b:2")
    assert make_config("c:3").namesrv_addrs == ("c:3",)
