"""The import law of docs/architecture.md, checked against every module's imports."""

import ast
from collections import defaultdict
from pathlib import Path

import pytest

from tools.imports.graph import (
    PACKAGE,
    ROOT,
    child_graph,
    circles,
    imported_modules,
    imports_of,
    modules,
    packages,
)
from tools.imports.picture import picture
from tools.imports.tables import PAGE, divided, drawn, drawn_folders

# Part of the system → other parts that it may import. A module belongs to the part with the longest name that
# is a prefix of the module's name.
LAW = {
    "protocol": set(),
    "protocol.files": set(),
    "protocol.remoting": {"protocol", "protocol.files"},
    "namesrv": {"protocol", "protocol.files", "protocol.remoting"},
    "broker": {"protocol", "protocol.files", "protocol.remoting", "broker.store"},
    "broker.store": {"protocol", "protocol.files"},
    "watch": {"protocol"},
    "client": {"protocol", "protocol.files", "protocol.remoting", "watch"},
    "cluster": {"protocol", "protocol.files", "protocol.remoting", "client"},
    "race": {
        "protocol",
        "protocol.files",
        "protocol.remoting",
        "namesrv",
        "broker",
        "broker.store",
        "client",
        "cluster",
    },
    "pipeline": {"protocol", "protocol.files", "broker.store"},
    "sync": {"protocol", "protocol.files", "protocol.remoting", "client", "cluster"},
    "testing": {"protocol", "protocol.files", "protocol.remoting", "client", "cluster", "race"},
    "dashboard": {"protocol", "protocol.files", "protocol.remoting", "client", "race", "watch"},
}

# Modules that would make pure code depend on the machine or the time.
IMPURE = {
    "asyncio", "io", "multiprocessing", "os", "pathlib", "random", "secrets", "select", "selectors", "shutil",
    "signal", "socket", "ssl", "subprocess", "tempfile", "threading", "time", "uuid", "uvloop",
}  # fmt: skip
# The same for code that reads and writes files.
ONLY_FILES = {
    "asyncio",
    "multiprocessing",
    "random",
    "select",
    "selectors",
    "socket",
    "ssl",
    "time",
    "uvloop",
}
FORBIDDEN = {
    "protocol": IMPURE,
    "watch": IMPURE,
    "protocol.files": ONLY_FILES,
    "broker.store": ONLY_FILES,
}
# Folders whose modules are all of one kind: handlers, commands, races.
ONE_KIND = {
    "broker.handlers",
    "client.admin.commands",
    "dashboard.pages",
    "namesrv.handlers",
    "race.scenario",
}
MAX_FILES = 20
# The module that runs every server process.
ENTRY_POINT_RUNNER = "protocol.remoting.process.runner"


def part_of(module: str) -> str:
    """Return the part that a module (named without ``rewindmq.``) belongs to; "" for the package itself."""
    owners = [part for part in LAW if module == part or module.startswith(part + ".")]
    return max(owners, key=len, default="")


MODULES = modules()


def is_entry_point(module: str) -> bool:
    last = module.rpartition(".")[2]
    return last in {"__main__", "cli"} or last.endswith("_cli") or module == ENTRY_POINT_RUNNER


def test_the_law_names_every_folder_with_code() -> None:
    links = [link for link in (ROOT / "src" / PACKAGE).iterdir() if link.is_symlink()]
    assert all(link.is_dir() for link in links)
    assert {link.name for link in links} <= {part.partition(".")[0] for part in LAW}
    assert {part_of(module) for module in MODULES} <= set(LAW)
    assert {"protocol.frame", "protocol.remoting.runtime", "broker.store.store"} <= set(MODULES)


@pytest.mark.parametrize("package", sorted(packages()))
def test_packages_of_a_folder_import_each_other_in_one_direction(package: str) -> None:
    assert not circles(child_graph(package))


@pytest.mark.parametrize("package", sorted(packages() - ONE_KIND))
def test_a_folder_holds_twenty_files_at_most(package: str) -> None:
    assert len(list(modules()[package].parent.glob("*.py"))) <= MAX_FILES


def test_no_two_public_classes_have_one_name() -> None:
    """Those of ``sync`` are the clients that they wrap; typed bodies have the names of Java's classes."""
    modules_of = defaultdict(set)
    for module, path in MODULES.items():
        if part_of(module) == "sync":
            continue
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                modules_of[node.name].add(module)
    assert {name for name, own in modules_of.items() if len(own) > 1} == {"Connection"}


def test_the_client_folder_has_no_modules_outside_its_packages() -> None:
    assert [path.name for path in (ROOT / "client").glob("*.py")] == ["__init__.py"]


def test_the_page_shows_the_imports_between_packages() -> None:
    page = PAGE.read_text()
    assert sorted(drawn_folders(page)) == divided()
    assert page == drawn(page), "run ./scripts/draw_imports"


@pytest.mark.parametrize("module", sorted(MODULES))
def test_a_module_imports_only_what_its_folder_may(module: str) -> None:
    own = part_of(module)
    allowed = LAW[own] | {own}
    for imported in imports_of(MODULES[module]):
        if imported.startswith(PACKAGE + "."):
            name = imported.removeprefix(PACKAGE + ".")
            # A name that is not a module belongs to the part of its package.
            assert part_of(name) in allowed, f"{module} imports {imported}"


@pytest.mark.parametrize("module", sorted(name for name in MODULES if part_of(name) in FORBIDDEN))
def test_pure_parts_touch_no_clock_network_or_loop(module: str) -> None:
    top_level = {imported.partition(".")[0] for imported in imports_of(MODULES[module])}
    assert not top_level & FORBIDDEN[part_of(module)]


def test_only_the_pipeline_imports_pyspark() -> None:
    users = {module for module, path in MODULES.items() if "pyspark" in imports_of(path)}
    assert {part_of(module) for module in users} <= {"pipeline"}


def test_only_entry_points_import_uvloop() -> None:
    users = {module for module, path in MODULES.items() if "uvloop" in imports_of(path)}
    assert all(is_entry_point(module) for module in users), users


def test_the_reader_of_imports_sees_them_all(tmp_path: Path) -> None:
    source = tmp_path / "sample.py"
    source.write_text("import a.b\nfrom c import d as e\ndef f():\n    import g\n")
    assert imports_of(source) == {"a.b", "c", "c.d", "g"}


def test_the_reader_tells_a_module_of_a_package_from_a_name_of_it(tmp_path: Path) -> None:
    source = tmp_path / "sample.py"
    source.write_text("from rewindmq.a import b, C\nif TYPE_CHECKING:\n    from rewindmq.a.d import E\n")
    assert imported_modules(source, {"a", "a.b", "a.d", "f"}) == {"a", "a.b", "a.d"}


def test_circles_are_found_however_long_they_are() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": set(), "f": {"g"}, "g": {"f"}}
    assert circles(graph) == [["a", "b", "c"], ["f", "g"]]
    assert not circles({"a": {"b", "c"}, "b": {"c"}, "c": set()})


def test_a_picture_leaves_out_the_arrows_that_others_imply() -> None:
    lines = [line.strip() for line in picture("race.explore").splitlines()]
    assert "race_explore_search --> race_explore_model" in lines
    assert "race_explore_model --> race_explore_schedule" in lines
    assert "race_explore_search --> race_explore_schedule" not in lines
