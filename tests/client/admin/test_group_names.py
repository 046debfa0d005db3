"""Which groups there are, by the topics and the stored offsets."""

from __future__ import annotations

from rewindmq.client.admin.groups import group_names


def test_the_retry_topics_of_a_group_that_pops_are_no_groups() -> None:
    topics = ["T", "T_2", "%RETRY%G_T", "%RETRY%G_T_2", "%RETRY%G+T", "%RETRY%H+T"]
    assert group_names(topics, {"G"}) == {"G", "H"}


def test_a_group_whose_name_looks_so_is_one_if_it_has_offsets() -> None:
    assert group_names(["T", "%RETRY%G", "%RETRY%G_T"], {"G_T"}) == {"G", "G_T"}


def test_a_group_with_an_underscore_is_one_if_its_parts_are_unknown() -> None:
    assert group_names(["T", "%RETRY%G_T", "%RETRY%a_b", "%RETRY%c_"], set()) == {"G_T", "a_b", "c_"}


def test_a_group_that_never_connected_is_known_by_its_offsets() -> None:
    assert group_names(["T"], {"G"}) == {"G"}
