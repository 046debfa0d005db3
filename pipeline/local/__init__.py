"""The local engine: the jobs' own readers in this process, without Java."""
