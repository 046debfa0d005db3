"""The entry point: ``rewindmq <command> ...``.

Only the module of the command is loaded, so that ``--help`` answers at once. This module itself loads next to
nothing: Ctrl-C is quiet from the first line of ``main``.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn

from rewindmq import __version__

if TYPE_CHECKING:
    import argparse

EXIT_OK: Final = 0
EXIT_ERROR: Final = 1
EXIT_USAGE: Final = 2
EXIT_INTERRUPTED: Final = 130


class Command(NamedTuple):
    """A command: its module and its line in the list of commands.

    The module has ``add_arguments(parser)`` and ``run(arguments) -> int``, and may have ``EPILOG``: the
    examples at the end of its help text.
    """

    module: str
    help: str


COMMANDS: Final = MappingProxyType(
    {
        "namesrv": Command("rewindmq.namesrv.cli", "run a name server"),
        "broker": Command("rewindmq.broker.cli", "run a broker"),
        "up": Command("rewindmq.testing.control.up_cli", "run a local cluster in the foreground"),
        "members": Command(
            "rewindmq.cluster.up.members_cli", "show, kill, restart or pause a local cluster's processes"
        ),
        "admin": Command(
            "rewindmq.client.cli.admin_cli", "run one of mqadmin's commands, such as resetOffsetByTime"
        ),
        "produce": Command("rewindmq.client.cli.produce_cli", "send messages to a topic"),
        "consume": Command("rewindmq.client.cli.consume_cli", "print or count the messages of a topic"),
        "peek": Command("rewindmq.client.cli.peek_cli", "print messages of a topic, without a group"),
        "lag": Command("rewindmq.client.cli.lag_cli", "show what the groups have not consumed yet"),
        "watch": Command("rewindmq.client.cli.watch_cli", "record a group's resets, and judge the record"),
        "health": Command("rewindmq.client.cli.health_cli", "check that the servers answer"),
        "dashboard": Command("rewindmq.dashboard.cli", "serve web pages about a cluster"),
        "demo": Command("rewindmq.cluster.demo.cli", "send, consume, reset, consume again, and verify it"),
        "race": Command("rewindmq.race.cli", "lose a reset on purpose, see why, and prove a fix"),
        "pipeline": Command("rewindmq.pipeline.cli", "read, compact, index and check a broker's store"),
        "completion": Command("rewindmq.__main__", "print a shell's completion script"),
    }
)

_EPILOG: Final = """\
examples:
  rewindmq up --brokers 2                       a name server and two brokers, until Ctrl-C
  export NAMESRV_ADDR=127.0.0.1:9876            the name server, for all other commands
  rewindmq produce -t TopicTest 'Hello'
  rewindmq consume -t TopicTest -g demo
  rewindmq peek TopicTest --follow
  rewindmq lag -g demo --watch
  rewindmq admin resetOffsetByTime -t TopicTest -g demo -s 0
  rewindmq COMMAND --help

exit codes: 0 done, 1 failed (one line on stderr says why), 2 wrong usage, 130 interrupted
"""

_COMPLETION_EPILOG: Final = """\
examples:
  rewindmq completion bash > ~/.local/share/bash-completion/completions/rewindmq
  rewindmq completion zsh > ~/.zsh/completions/_rewindmq
  rewindmq completion tcsh > ~/.rewindmq.completion.csh
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return the process's exit code.

    Args:
        argv: the command's words; None: this process's. Then Ctrl-C ends the process at once, except while
            the command runs, which cleans up.
    """
    # A parent may have ignored SIGINT, as a shell does for commands in the background.
    is_process = argv is None and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_process:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from rewindmq.protocol.remoting.process.standard_streams import discard_unwritten, open_closed_streams

    open_closed_streams()
    try:
        return _guard(list(sys.argv[1:] if argv is None else argv), is_process=is_process)
    finally:
        discard_unwritten()


def _guard(arguments: list[str], *, is_process: bool) -> int:
    """Run one command; turn an exception into an exit code and at most one line on stderr."""
    try:
        try:
            command = _command(arguments)
            if is_process:
                signal.signal(signal.SIGINT, signal.default_int_handler)
            try:
                return command()
            finally:
                if is_process:
                    signal.signal(signal.SIGINT, signal.SIG_DFL)
        finally:
            # A failed flush at the interpreter's exit would print a traceback and return exit code 120.
            sys.stdout.flush()
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader closed the pipe, as in `rewindmq admin topicList | head -1`.
        return EXIT_ERROR
    except OSError as error:
        return _fail(arguments, _describe(error))
    except Exception as error:
        from rewindmq.protocol.errors import RewindMQError

        if not isinstance(error, RewindMQError):
            raise
        return _fail(arguments, str(error))


def build_parser(name: str) -> argparse.ArgumentParser:
    """Return the parser of one command; its result has the command's function as ``_run``."""
    if name == "completion":
        add_arguments, run, epilog = _add_completion_arguments, _complete, _COMPLETION_EPILOG
    else:
        import importlib

        module = importlib.import_module(COMMANDS[name].module)
        add_arguments, run, epilog = module.add_arguments, module.run, getattr(module, "EPILOG", "")
    import argparse

    text = COMMANDS[name].help
    parser = argparse.ArgumentParser(
        prog=f"rewindmq {name}",
        description=f"{text[0].upper()}{text[1:]}.",
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_arguments(parser)
    parser.set_defaults(_run=run)
    return parser


def _command(arguments: list[str]) -> Callable[[], int]:
    """Load what the words ask for; the result runs it, and returns the exit code."""
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        return lambda: _show(_usage(), EXIT_OK if arguments else EXIT_USAGE)
    if arguments[0] in ("-V", "--version"):
        return _show_version
    name = arguments[0]
    if name not in COMMANDS:
        _refuse_unknown(name)
    parsed = build_parser(name).parse_args(arguments[1:])
    # Not loaded for --help, which answers at once.
    from rewindmq.protocol.remoting.process.log_format import escape_unconfigured_log

    escape_unconfigured_log()
    return lambda: int(parsed._run(parsed))


def _show(text: str, code: int) -> int:
    print(text)
    return code


def _show_version() -> int:
    from rewindmq.protocol.remoting.process.speedups import describe_speedups

    return _show(f"rewindmq {__version__} ({describe_speedups()})", EXIT_OK)


def _add_completion_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=("bash", "zsh", "tcsh"))


def _complete(arguments: argparse.Namespace) -> int:
    try:
        import argparse

        import shtab
    except ImportError:
        _say("rewindmq completion: needs shtab: pip install 'rewindmq[cli]'")
        return EXIT_ERROR
    root = argparse.ArgumentParser(prog="rewindmq")
    commands = root.add_subparsers()
    for name, command in COMMANDS.items():
        commands.add_parser(name, help=command.help, parents=[build_parser(name)], add_help=False)
    print(shtab.complete(root, arguments.shell))
    return EXIT_OK


def _usage() -> str:
    width = max(map(len, COMMANDS))
    rows = "\n".join(f"  {name:<{width}}  {command.help}" for name, command in COMMANDS.items())
    return (
        "usage: rewindmq [-h] [--version] COMMAND ...\n\n"
        "A RocketMQ-compatible cluster that can be rewound.\n\n"
        f"commands:\n{rows}\n\n{_EPILOG}"
    ).rstrip()


def _refuse_unknown(name: str) -> NoReturn:
    import difflib

    close = difflib.get_close_matches(name, COMMANDS, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    _say(f"rewindmq: there is no command {name!r}.{hint} See rewindmq --help.")
    raise SystemExit(EXIT_USAGE)


def _fail(arguments: list[str], text: str) -> int:
    _say(f"rewindmq {arguments[0]}: {text}")
    return EXIT_ERROR


def _say(text: str) -> None:
    """Print a line on standard error; if that is closed, only the exit code reports the error.

    The text may have parts that a peer or a file has sent, so control characters are escaped.
    """
    from contextlib import suppress

    from rewindmq.protocol.text import escape_controls

    with suppress(OSError):
        print(escape_controls(text), file=sys.stderr)


def _describe(error: OSError) -> str:
    text = error.strerror or str(error) or type(error).__name__
    return f"{error.filename}: {text}" if error.filename is not None else text


if __name__ == "__main__":
    raise SystemExit(main())
