"""Tree of the states with a choice: the options explored, and the options that remain."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rewindmq.race.explore.search.explorer import Branch, ChoiceState
from rewindmq.race.explore.search.races import Hosts


class _Node:
    """A state with a choice.

    Attributes:
        names: names of the options.
        asleep: the sleep set.
        tried: options that were tried or are running, with the hosts they touch; None while one runs.
        wanted: groups of options; one of each group must be tried.
    """

    __slots__ = ("asleep", "children", "names", "tried", "wanted")

    def __init__(self, names: Sequence[str], asleep: Mapping[str, Hosts]) -> None:
        self.names = names
        self.asleep = asleep
        self.tried: dict[int, Hosts | None] = {}
        self.wanted: list[tuple[int, ...]] = []
        self.children: dict[int, _Node] = {}

    def next_option(self) -> int | None:
        """Return the option to try next; None if none remains, or while an option of this state runs."""
        if any(touched is None for touched in self.tried.values()):
            return None
        while self.wanted:
            group = self.wanted.pop()
            if not any(index in self.tried or self.names[index] in self.asleep for index in group):
                return group[0]
        return None


class Tree:
    """All states with a choice that a search has passed."""

    def __init__(self) -> None:
        self._root: _Node | None = None

    def add(self, states: Sequence[ChoiceState]) -> Iterable[Branch]:
        """Add a run's states; return the branches that must be run because of them."""
        branches = []
        parent: _Node | None = None
        node = self._root
        path: tuple[int, ...] = ()
        for state in states:
            if node is None:
                node = _Node(state.names, state.asleep)
                if parent is None:
                    self._root = node
                else:
                    parent.children[path[-1]] = node
            node.tried[state.taken] = state.touched
            known = set(node.wanted)
            node.wanted += [group for group in state.wanted if group not in known]
            option = node.next_option()
            if option is not None:
                asleep = {
                    node.names[index]: hosts for index, hosts in node.tried.items() if hosts is not None
                }
                node.tried[option] = None
                branches.append(Branch((*path, option), {**node.asleep, **asleep}))
            path = (*path, state.taken)
            parent, node = node, node.children.get(state.taken)
        return branches
