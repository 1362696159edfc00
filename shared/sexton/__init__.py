"""Sexton: cluster-wide cron. What every part shares: words, values, the store.

``from sexton import job, Job`` is what a Python job file needs (``job_declarations``). Importing this package stays
light: it loads neither SQLAlchemy nor pydantic.
"""

from sexton.job_declarations import Job, job

__version__ = "0.1.0"
__all__ = ["Job", "__version__", "job"]
