"""``sexton scheduler`` and ``sexton worker``: one process each, until it is told to stop.

Both keep trying where a service cannot be reached; only a wrong setting or a cluster they do not belong to ends them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sexton_tui.cli.invocation import invocation_of

if TYPE_CHECKING:
    from sexton.process_settings import ProcessSettings

NameOption = Annotated[str | None, typer.Option("--name", help="What this process is called; HOST-PID by default.")]
PollOption = Annotated[str | None, typer.Option("--poll", metavar="DURATION", help="How often to look without news.")]
HttpOption = Annotated[
    str | None, typer.Option("--http", metavar="ADDRESS", help="Serve metrics and health on this PORT or HOST:PORT.")
]
LogOption = Annotated[str | None, typer.Option("--log", metavar="FORMAT", help="console or json.")]


def scheduler(
    ctx: typer.Context,
    name: NameOption = None,
    poll: PollOption = None,
    coordinator_ca: Annotated[
        str | None,
        typer.Option("--coordinator-ca", metavar="FILE", help="TLS to ZooKeeper: who signed its certificates."),
    ] = None,
    coordinator_certificate: Annotated[
        str | None, typer.Option("--coordinator-certificate", metavar="FILE", help="This node's own certificate.")
    ] = None,
    coordinator_key: Annotated[
        str | None, typer.Option("--coordinator-key", metavar="FILE", help="The key of that certificate.")
    ] = None,
    http: HttpOption = None,
    log: LogOption = None,
) -> None:
    """Run one node: it leads, or stands by as a follower. SIGTERM hands over and stops it."""
    settings = invocation_of(ctx).settings(
        name=name,
        poll=poll,
        http=http,
        log=log,
        coordinator_ca=coordinator_ca,
        coordinator_certificate=coordinator_certificate,
        coordinator_key=coordinator_key,
    )
    start_logging(settings)
    from sexton_scheduler.node import NodeOptions, run_node

    run_node(
        NodeOptions(
            database_url=settings.database,
            coordinator=settings.coordinator,
            name=settings.name,
            poll=settings.poll,
            access=settings.coordinator_access,
            alerts=settings.alerts,
            http=settings.http,
        )
    )


def worker(
    ctx: typer.Context,
    name: NameOption = None,
    queues: Annotated[str | None, typer.Option("--queues", metavar="A,B", help="Which queues to pull.")] = None,
    slots: Annotated[str | None, typer.Option("--slots", metavar="N", help="How many runs at once.")] = None,
    poll: PollOption = None,
    drain: Annotated[
        str | None, typer.Option("--drain", metavar="DURATION", help="How long SIGTERM lets runs go on.")
    ] = None,
    output: Annotated[
        str | None,
        typer.Option("--output", metavar="PLACE", help="Keep outputs of runs whole: a folder, or s3://..., gs://..."),
    ] = None,
    http: HttpOption = None,
    log: LogOption = None,
) -> None:
    """Run one worker. SIGTERM drains it; a second one gives its claims back."""
    settings = invocation_of(ctx).settings(
        name=name, queues=queues, slots=slots, poll=poll, drain=drain, output=output, http=http, log=log
    )
    start_logging(settings)
    from sexton_worker.output_threads import WholeOutput
    from sexton_worker.worker import WorkerOptions, run_worker

    run_worker(
        WorkerOptions(
            database_url=settings.database,
            name=settings.name,
            queues=settings.queues,
            slots=settings.slots,
            poll=settings.poll,
            drain=settings.drain,
            allow=settings.allow,
            secrets=settings.secrets,
            whole_output=None if settings.output is None else WholeOutput(settings.output, settings.output_limit),
            python_recycle_runs=settings.python_recycle_runs,
            python_recycle_memory=settings.python_recycle_memory,
            http=settings.http,
        )
    )


def start_logging(settings: ProcessSettings) -> None:
    """Structured logs on stderr, those of libraries too: readable lines, or one JSON object each; instants are UTC.

    From then on no line of a log raises or hangs, whatever becomes of stderr.
    """
    import logging
    import sys

    import structlog

    from sexton.process_settings import LogFormat
    from sexton_tui.cli.library_logs import route_library_logs
    from sexton_tui.cli.log_stream import log_stream_of

    stream = log_stream_of(sys.stderr)
    as_json = settings.log is LogFormat.JSON
    renderer = (
        structlog.processors.JSONRenderer()
        if as_json
        else structlog.dev.ConsoleRenderer(colors=stream.isatty(), exception_formatter=structlog.dev.plain_traceback)
    )
    # Without what the variables held at the time: that may be a password or a job's secret.
    without_values = structlog.tracebacks.ExceptionDictTransformer(show_locals=False)
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        *([structlog.processors.ExceptionRenderer(without_values)] if as_json else []),
    ]
    structlog.configure(
        processors=[*shared, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.WriteLoggerFactory(file=stream),
    )
    route_library_logs(stream, shared, renderer)
