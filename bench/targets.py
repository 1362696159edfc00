"""What the measured jobs run."""


def noop() -> None:
    """Nothing: what is left is Sexton's own time."""
