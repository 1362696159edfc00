"""Sexton: cluster-wide cron. What every part shares: words, values, the store.

Importing this package stays light: it loads neither SQLAlchemy nor pydantic.
"""

__version__ = "0.1.0"
