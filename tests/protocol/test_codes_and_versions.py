"""Request and response codes, version ordinals, language codes (docs/spec/protocol.md 1.4, 1.5, 3, 4)."""

import pytest

from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.version import CURRENT_VERSION, LanguageCode, MQVersion, version_name

# In 4.9.4, the codes 209 to 211 have other names than in 5.x (docs/spec/protocol.md 4).
REUSED = {209, 210, 211}


def test_every_request_code_has_one_name() -> None:
    assert len(RequestCode.__members__) == len(set(RequestCode))


def test_only_the_reused_response_codes_have_two_names() -> None:
    twice = {code.value for name, code in ResponseCode.__members__.items() if name != code.name}
    assert twice == REUSED


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("SEND_MESSAGE", 10),
        ("PULL_MESSAGE", 11),
        ("HEART_BEAT", 34),
        ("REGISTER_BROKER", 103),
        ("GET_ROUTEINFO_BY_TOPIC", 105),
        ("RESET_CONSUMER_CLIENT_OFFSET", 220),
        ("INVOKE_BROKER_TO_RESET_OFFSET", 222),
        ("SEND_MESSAGE_V2", 310),
        ("SEND_BATCH_MESSAGE", 320),
        ("LITE_PULL_MESSAGE", 361),
        ("POP_MESSAGE", 200050),
    ],
)
def test_anchors_of_the_request_codes(name: str, number: int) -> None:
    assert RequestCode[name] == number


def test_anchors_of_the_response_codes() -> None:
    anchors = {
        3: ResponseCode.REQUEST_CODE_NOT_SUPPORTED,
        17: ResponseCode.TOPIC_NOT_EXIST,
        21: ResponseCode.PULL_OFFSET_MOVED,
        22: ResponseCode.QUERY_NOT_FOUND,
        206: ResponseCode.CONSUMER_NOT_ONLINE,
    }
    assert {number: ResponseCode(number) for number in anchors} == anchors


@pytest.mark.parametrize("version", MQVersion)
def test_named_versions_agree_with_the_series(version: MQVersion) -> None:
    assert version_name(version) == version.name


@pytest.mark.parametrize(
    ("ordinal", "name"),
    [
        (1, "V3_0_0_ALPHA1"),
        (15, "V3_0_0_FINAL"),
        (16, "V3_0_1_SNAPSHOT"),
        (45, "V3_0_15"),
        (46, "V3_1_0_SNAPSHOT"),
        (85, "V3_2_9"),
        (86, "V3_3_1_SNAPSHOT"),
        (211, "V3_9_9"),
        (317, "V4_5_2"),
        (411, "V4_9_9"),
        (412, "V5_0_0_SNAPSHOT"),
        (611, "V5_9_9"),
        (612, "HIGHER_VERSION"),
        (100_000, "HIGHER_VERSION"),
        (-1, "V3_0_0_SNAPSHOT"),
    ],
)
def test_version_names(ordinal: int, name: str) -> None:
    assert version_name(ordinal) == name


def test_every_ordinal_has_its_own_name() -> None:
    assert len({version_name(ordinal) for ordinal in range(613)}) == 613


def test_rewindmq_announces_the_base_version() -> None:
    assert version_name(CURRENT_VERSION) == "V4_9_4"


@pytest.mark.parametrize(
    ("value", "language"),
    [
        ("JAVA", 0),
        ("PYTHON", 3),
        (3, 3),
        (13, 13),
        ("KLINGON", 7),
        (14, 7),
        (-1, 7),
        (255, 7),
        (None, 7),
        (1.5, 7),
    ],
)
def test_languages_are_read_by_name_or_number(value: float | str | None, language: int) -> None:
    assert LanguageCode.parse(value) == language
