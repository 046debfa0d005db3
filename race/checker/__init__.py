"""Judges histories by the laws that a reset must keep; depends on events only."""

from rewindmq.race.checker.judge import judge
from rewindmq.race.checker.progress import ProgressChange, QueueProgress, progress
from rewindmq.race.checker.verdict import JudgeFrom, Law, Verdict, Violation

__all__ = ["JudgeFrom", "Law", "ProgressChange", "QueueProgress", "Verdict", "Violation", "judge", "progress"]
