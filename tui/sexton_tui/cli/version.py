"""``sexton version``."""

from __future__ import annotations

import platform

from sexton import __version__
from sexton_tui.cli.output import Output, OutputOption, print_record


def version(output: OutputOption = Output.TABLE) -> None:
    """The versions of Sexton and of what its ticks depend on."""
    from sexton.public_holidays import holiday_data_version
    from sexton.schedules import TICK_ENGINE_VERSION
    from sexton.zones import zone_data_version

    record = {
        "sexton": __version__,
        "tick_engine": TICK_ENGINE_VERSION,
        "zone_data": zone_data_version(),
        "holidays": holiday_data_version(),
        "python": platform.python_version(),
    }
    print_record(record, output)
