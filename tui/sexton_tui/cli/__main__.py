"""``python -m sexton_tui.cli``: the same as ``sexton``."""

from sexton_tui.cli.main import main

main()
