"""broker.conf: RocketMQ's keys, and one-line errors for unusable values."""

from __future__ import annotations

from pathlib import Path

import pytest

from rewindmq.broker.config import BrokerConfig, read_broker_config
from rewindmq.broker.store.config import FlushDiskType
from rewindmq.protocol.errors import ConfigError
from rewindmq.protocol.profile import Profile


def test_defaults_are_those_of_rocketmq() -> None:
    config = BrokerConfig()
    assert (config.broker_cluster_name, config.listen_port) == ("DefaultCluster", 10_911)
    assert (config.default_topic_queue_nums, config.broker_permission) == (8, 6)
    assert (config.flush_consumer_offset_interval, config.register_name_server_period) == (5_000, 30_000)
    assert config.store.flush_disk_type is FlushDiskType.ASYNC_FLUSH
    assert config.root == Path("~/store").expanduser()
    assert config.namesrv_addresses == ()


def test_a_file_of_rocketmq_with_the_command_line_over_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "broker.conf"
    path.write_text(
        "# as shipped\nbrokerClusterName = C\nbrokerName=broker-x\nbrokerId = 0\ndeleteWhen = 04\n"
        "fileReservedTime = 48\nwarmMapedFileEnable=true\nbrokerRole = ASYNC_MASTER\n"
        "flushDiskType = SYNC_FLUSH\nbrokerIP1=10.1.1.1\n"
        "namesrvAddr=a:1;b:2\nautoCreateTopicEnable=false\nmappedFileSizeCommitLog=65536\nprofile=v53\n"
    )
    config = read_broker_config(path, listen_port=0, bind_address=None)
    assert (config.broker_cluster_name, config.broker_name, config.broker_ip1) == (
        "C",
        "broker-x",
        "10.1.1.1",
    )
    assert config.namesrv_addresses == ("a:1", "b:2")
    assert config.listen_port == 0
    assert not config.auto_create_topic_enable
    assert config.store.mapped_file_size_commit_log == 65_536
    assert config.store.flush_disk_type is FlushDiskType.SYNC_FLUSH
    assert config.profile is Profile.V53
    assert (config.file_reserved_time, config.delete_when) == (48, "04")
    assert caplog.messages == [f"{path}: ignored unknown keys: warmMapedFileEnable"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("listenPort=99999", "2: listenPort = '99999'"),
        ("listenPort=abc", "2: listenPort = 'abc'"),
        ("brokerId=1", "brokerId = 1 with brokerRole = ASYNC_MASTER"),
        ("brokerRole=SLAVE", "brokerId = 0 with brokerRole = SLAVE"),
        ("resetMode=fence", "2: resetMode = 'fence'"),
        ("serverMaxUnfinishedFrameBytes=16777215", "2: serverMaxUnfinishedFrameBytes = '16777215'"),
        ("serverFrameTimeoutMillis=0", "2: serverFrameTimeoutMillis = '0'"),
        ("profile=v48", "2: profile = 'v48'"),
        ("flushDiskType=NEVER", "2: flushDiskType = 'NEVER'"),
        ("mappedFileSizeCommitLog=1", "mappedFileSizeCommitLog"),
        ("defaultTopicQueueNums=0", "2: defaultTopicQueueNums = '0'"),
        ("autoCreateTopicEnable=maybe", "2: autoCreateTopicEnable = 'maybe'"),
        ("brokerName=../../x", "2: brokerName = '../../x'"),
        ("brokerIP1=my-host", "brokerIP1 'my-host' is not an IP address"),
        ("namesrvAddr=nowhere", "name server address 'nowhere' is not host:port"),
        ("namesrvAddr=a:1;b:99999", "'b:99999' is not host:port"),
    ],
)
def test_bad_values_are_named_in_one_line(tmp_path: Path, line: str, words: str) -> None:
    path = tmp_path / "broker.conf"
    path.write_text(f"# comment\n{line}\n")
    with pytest.raises(ConfigError) as caught:
        read_broker_config(path)
    text = str(caught.value)
    assert str(path) in text
    assert words in text
    assert "\n" not in text


def test_name_servers_of_the_environment_come_last(tmp_path: Path) -> None:
    path = tmp_path / "broker.conf"
    path.write_text("namesrvAddr=file:1\n")
    assert read_broker_config(path, fallback_namesrv_addr="env:1").namesrv_addr == "file:1"
    assert read_broker_config(None, fallback_namesrv_addr="env:1").namesrv_addr == "env:1"
    assert (
        read_broker_config(path, fallback_namesrv_addr="env:1", namesrv_addr="cli:1").namesrv_addr == "cli:1"
    )


def test_a_commit_log_elsewhere_is_refused_and_not_ignored(tmp_path: Path) -> None:
    path = tmp_path / "broker.conf"
    path.write_text(f"storePathRootDir={tmp_path}/store\nstorePathCommitLog={tmp_path}/store/commitlog\n")
    assert read_broker_config(path).root == tmp_path / "store"

    path.write_text(f"storePathRootDir={tmp_path}/store\nstorePathCommitLog=/big/disk\n")
    with pytest.raises(ConfigError, match="storePathCommitLog = '/big/disk'"):
        read_broker_config(path)
