"""The one program, ``sexton``: finds the command, runs it, and turns what happens into an exit code.

Exit codes: 0 done; 1 the answer is no (invalid, not found, refused, differences, old schema); 2 wrong usage; 3 a
service cannot be reached; 4 a fault of Sexton's own; 130 interrupted. Errors go to stderr as one sentence, and a
traceback only with ``--debug``. Output that nobody reads any more (``| head``) ends a command without a word: 141.

A command is a row of ``COMMANDS``: its name, ``module:attribute``, and one line of help. The attribute is a function
with Typer's annotations, or a ``typer.Typer`` for a group of commands. The module is imported when its command is
called and not before, so that ``sexton --help`` loads neither a database driver nor a console.
"""

from __future__ import annotations

import gc
import os
import re
import sys
import traceback
from collections.abc import Sequence
from typing import Any, NamedTuple

try:
    import typer
    from typer.core import TyperCommand, TyperGroup
    from typer.main import get_command as command_of

    from sexton.errors import InvalidJobFile, SextonError
    from sexton_tui.cli.invocation import Invocation, with_shared_options
except KeyboardInterrupt:  # before it has begun; a TAB that is given up, too
    raise SystemExit(130) from None

EXIT_REFUSED = 1
EXIT_FAULT = 4
EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141


class Command(NamedTuple):
    """One row of the command table."""

    name: str
    where: str
    summary: str


_CLI = "sexton_tui.cli"
COMMANDS: tuple[Command, ...] = (
    Command("up", f"{_CLI}.up:up", "A whole cluster of real processes on this machine, with its console."),
    Command("scheduler", f"{_CLI}.processes:scheduler", "Run one node: the leader, or a follower that stands by."),
    Command("worker", f"{_CLI}.processes:worker", "Run one worker: it pulls claimed ticks and runs them."),
    Command("console", f"{_CLI}.listings.console:console", "Watch the cluster, and operate it."),
    Command("status", f"{_CLI}.listings.status:status", "Who leads and how late things are, on one screen."),
    Command("validate", f"{_CLI}.validate:validate", "Check job files without a database; every problem at once."),
    Command("plan", f"{_CLI}.plan:plan", "What applying job files would change: definitions, ticks, claims."),
    Command("apply", f"{_CLI}.apply:apply", "Plan job files against the cluster, show, ask, and apply."),
    Command("history", f"{_CLI}.history:history", "What was done to jobs: revisions, who, when and why."),
    Command("revert", f"{_CLI}.history:revert", "Make a job what it was in a past revision."),
    Command("schema", f"{_CLI}.schema:schema", "The JSON Schema of job files, for editors."),
    Command("export", f"{_CLI}.export:export", "What runs now, as job files."),
    Command("import", f"{_CLI}.import_jobs:import_jobs", "Job files from crontabs, systemd timers and CronJobs."),
    Command("next", f"{_CLI}.next_ticks:next_ticks", "The ticks to come of an expression or a job."),
    Command("jobs", f"{_CLI}.listings.jobs:jobs", "The jobs, their schedules and their next ticks."),
    Command("ticks", f"{_CLI}.listings.ticks:ticks", "What became of ticks, and what is claimed ahead."),
    Command("explain", f"{_CLI}.explain:explain", "Why a tick ran or did not: decision, attempts, what is next."),
    Command("runs", f"{_CLI}.listings.runs:runs", "The runs: which worker, how late, how they ended."),
    Command("logs", f"{_CLI}.listings.logs:logs", "The kept output of a run."),
    Command("trigger", f"{_CLI}.operate:trigger", "Run a job now, beside its schedule."),
    Command("backfill", f"{_CLI}.backfill:backfill", "Run ticks of the past that did not run, or again."),
    Command("pause", f"{_CLI}.pausing:pause", "Stop grants and claims of jobs, or of all, until they are resumed."),
    Command("resume", f"{_CLI}.pausing:resume", "End the pause or quarantine of jobs, or the pause of all."),
    Command("skip-next", f"{_CLI}.skip_next:skip_next", "Name a tick to come that is not to run."),
    Command("cancel", f"{_CLI}.stopping:cancel", "Stop a tick's run, or all of a job's."),
    Command("rerun", f"{_CLI}.stopping:rerun", "Run a tick that has ended once more."),
    Command("takeovers", f"{_CLI}.listings.takeovers:takeovers", "Each takeover, its gap, and what it decided."),
    Command("cursors", f"{_CLI}.cursors:cursors", "How far each job is decided, and setting that by hand."),
    Command("holds", f"{_CLI}.holds:holds", "Missed ticks that wait for an operator, and the answers."),
    Command("cluster", f"{_CLI}.listings.cluster:cluster", "Leader, term, and the other nodes."),
    Command("workers", f"{_CLI}.listings.workers:workers", "The workers, their queues and slots."),
    Command("queues", f"{_CLI}.listings.queues:queues", "What waits in each queue, who serves it, and its limits."),
    Command("alerts", f"{_CLI}.listings.alerts:alerts", "What is wrong, what was, and who was told."),
    Command("events", f"{_CLI}.listings.events:events", "The audit log: who did what."),
    Command("leader", f"{_CLI}.leader:leader", "Ask the leader to hand over, or force a node to lead."),
    Command("inputs", f"{_CLI}.inputs:inputs", "Versions that ticks depend on, and accepting others."),
    Command("strategy", f"{_CLI}.strategy:strategy", "Whether one node leads or all race, and the switch."),
    Command("clock", f"{_CLI}.clock:clock", "The database's clock, who doubts it, and how to accept it."),
    Command("halt", f"{_CLI}.halt:halt", "Stop all decisions and grants, until the halt is lifted."),
    Command("settings", f"{_CLI}.cluster_settings:settings", "Read and change the cluster's settings."),
    Command("audit", f"{_CLI}.audit:audit", "Recompute what fell due and compare it with the ledger."),
    Command("simulate", f"{_CLI}.simulate:simulate", "A cluster, or your own schedule, on virtual time, with faults."),
    Command("compare", f"{_CLI}.compare:compare", "What a fleet costs with one leader, and racing."),
    Command("db", f"{_CLI}.database:db", "Bring the database's schema up to date, or check it."),
    Command("version", f"{_CLI}.version:version", "The versions of Sexton and of what its ticks depend on."),
)


def load(command: Command) -> TyperCommand | TyperGroup:
    """The command itself, with the options that all commands share; imports its module."""
    module_name, _, attribute = command.where.partition(":")
    __import__(module_name)
    target: Any = getattr(sys.modules[module_name], attribute)
    if isinstance(target, typer.Typer):
        app = target
    else:
        app = typer.Typer(add_completion=False, rich_markup_mode=None)
        app.command(command.name)(target)
    loaded = command_of(app)
    loaded.name = command.name
    assert isinstance(loaded, TyperCommand | TyperGroup)  # noqa: S101 - what Typer makes
    return with_shared_options(loaded)


class _LazyGroup(TyperGroup):
    """Knows every command's name and summary, and imports the one that is called."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [command.name for command in COMMANDS]

    def get_command(self, ctx: Any, cmd_name: str) -> TyperCommand | TyperGroup | None:
        for command in COMMANDS:
            if command.name == cmd_name:
                return TyperCommand(command.name, help=command.summary)
        return None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        self.commands = {command.name: TyperCommand(command.name) for command in COMMANDS}  # for "did you mean"
        name, found, rest = super().resolve_command(ctx, args)
        row = next((command for command in COMMANDS if command.name == name), None)
        return name, (found if row is None else load(row)), rest


def _root() -> TyperGroup:
    app = typer.Typer(
        cls=_LazyGroup,
        add_completion=True,
        rich_markup_mode=None,
        no_args_is_help=True,
        help="Cluster-wide cron: every tick decided once, whoever holds the rope.",
    )

    @app.callback()
    def sexton() -> None:
        """Holds nothing of its own; the options it shares with every command are added below."""

    group = command_of(app)
    assert isinstance(group, TyperGroup)  # noqa: S101 - it has a callback
    group.help = "Cluster-wide cron: every tick decided once, whoever holds the rope."
    with_shared_options(group)
    return group


def run(arguments: Sequence[str]) -> int:
    """Run one command line; its exit code. Never raises what a command raised."""
    invocation = Invocation()
    try:
        result = _root().main(list(arguments), prog_name="sexton", standalone_mode=False, obj=invocation)
    except Exception as error:  # the edge: every fault becomes a sentence and a code
        if invocation.debug:
            traceback.print_exc()
        return _report(error)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except SystemExit as ended:  # Typer's own end of a command whose output is closed
        if isinstance(ended.__context__, BrokenPipeError):
            return EXIT_BROKEN_PIPE
        return ended.code if isinstance(ended.code, int) else EXIT_REFUSED
    return result if isinstance(result, int) else 0


def _report(error: Exception) -> int:
    """Say on stderr what went wrong; the exit code for it."""
    if isinstance(error, InvalidJobFile):
        print(error, file=sys.stderr)
        return error.exit_code
    if isinstance(error, SextonError):
        print(f"sexton: {error}", file=sys.stderr)
        return error.exit_code
    if isinstance(error, typer.Abort):
        print("sexton: stopped; nothing was changed", file=sys.stderr)
        return EXIT_REFUSED
    if isinstance(error, typer.TyperException):
        return _report_usage(error)
    if isinstance(error, OSError) and error.filename:
        print(f"sexton: {error.filename}: {error.strerror}; check the path and who may use it", file=sys.stderr)
        return EXIT_REFUSED
    if isinstance(error, ModuleNotFoundError) and (sentence := missing_extra(error)):
        print(f"sexton: {sentence}", file=sys.stderr)
        return EXIT_REFUSED
    what = f"{type(error).__name__}: {error}".splitlines()[0]
    print(f"sexton: a fault of its own ({what}); run it again with --debug and report the traceback", file=sys.stderr)
    return EXIT_FAULT


def _report_usage(error: typer.TyperException) -> int:
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "sexton"
    message = error.format_message().strip()
    if type(error).__name__ == "NoArgsIsHelpError":  # `sexton` alone: the message is the help
        print(message, file=sys.stderr)
    else:
        print(f"sexton: {_in_own_words(message).rstrip('.')} (see '{path} --help')", file=sys.stderr)
    return error.exit_code


_TYPERS_WORDS = re.compile(r"Invalid value(?: for '([^']+)'(?: / '[^']+')*)?: (?:Value error, |Input )?")


def _in_own_words(message: str) -> str:
    """``--limit: should be ...``, as our own messages begin, for what Typer calls an invalid value."""
    typers = _TYPERS_WORDS.match(message)
    if typers is None:
        return message
    rest = message[typers.end() :]
    return f"{typers[1]}: {rest}" if typers[1] else rest


_EXTRAS = {
    "kazoo": "scheduler",
    "apscheduler": "scheduler",
    "textual": "tui",
    "aiohttp": "web",
    "textual_serve": "web",
    "psycopg": "postgres",
}


def missing_extra(error: ModuleNotFoundError) -> str | None:
    """The sentence for a library that an extra brings; None where the module is none of those."""
    library = (error.name or "").partition(".")[0]
    extra = _EXTRAS.get(library)
    if extra is None:
        return None
    return f"this needs {library}, which is not installed; run: pip install 'sexton[{extra}]'"


def main() -> None:
    """The ``sexton`` command: exits with the code of what it ran."""
    gc.set_threshold(20_000)  # what a program loads stays: 700 has it searched for garbage a hundred times meanwhile
    code = run(sys.argv[1:])
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        # The interpreter flushes once more at its end, and would complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)
