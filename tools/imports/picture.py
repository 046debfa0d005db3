"""The packages and modules of one folder as a Mermaid picture, which GitHub draws."""

from __future__ import annotations

from collections.abc import Iterator

from tools.imports.graph import Graph, child_graph, circles


def picture(package: str, *, only_circles: bool = False) -> str:
    """Return the imports among the children of a package as Mermaid text.

    An arrow is left out if other arrows lead to the same child, unless the children form a circle.

    Args:
        only_circles: leave out every child that is in no circle.
    """
    graph = child_graph(package)
    if only_circles:
        kept = {child for circle in circles(graph) for child in circle}
        graph = {child: others & kept for child, others in graph.items() if child in kept}
    return "\n".join(["graph TD", *_arrows(package, _reduced(graph))])


def _arrows(package: str, graph: Graph) -> Iterator[str]:
    for child in sorted(graph.keys() - {package}):
        name = child.removeprefix(f"{package}.")
        yield f'    {_id(child)}["{name}"]'
        for other in sorted(graph[child]):
            yield f"    {_id(child)} --> {_id(other)}"


def _id(child: str) -> str:
    return child.replace(".", "_")


def _reduced(graph: Graph) -> Graph:
    if circles(graph):
        return graph
    reached: Graph = {}

    def reach(node: str) -> set[str]:
        if node not in reached:
            reached[node] = {further for other in graph.get(node, ()) for further in {other, *reach(other)}}
        return reached[node]

    return {
        node: {
            other for other in others if not any(other in reach(third) for third in others if third != other)
        }
        for node, others in graph.items()
    }
