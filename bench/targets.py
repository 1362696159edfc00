"""What the measured jobs run."""

import os
import time


def noop() -> None:
    """Nothing: what is left is Sexton's own time."""


def nap() -> None:
    """Wait for as many seconds as the job's variable ``NAP`` says."""
    time.sleep(float(os.environ["NAP"]))
