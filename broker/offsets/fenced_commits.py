"""The commits that resets have overtaken: none of them is dropped in silence."""

from __future__ import annotations

from collections import deque

from rewindmq.broker.limits import MAX_FENCED_COMMITS
from rewindmq.protocol.body.fenced_commit import FencedCommit, FencedCommitList


class FencedCommits:
    """The newest ``MAX_FENCED_COMMITS``, and how many there were since the broker started."""

    def __init__(self) -> None:
        self._commits: deque[FencedCommit] = deque(maxlen=MAX_FENCED_COMMITS)
        self._total = 0

    def add(self, commit: FencedCommit) -> None:
        """Note one, in the place of the oldest where there is no room."""
        self._commits.append(commit)
        self._total += 1

    def listed(self, group: str | None, topic: str | None) -> FencedCommitList:
        """Those of a group and topic, oldest first; None means any."""
        commits = [
            commit
            for commit in self._commits
            if (group is None or commit.group == group) and (topic is None or commit.topic == topic)
        ]
        return FencedCommitList(commits, self._total)
