"""A gap in a term that goes on, on PostgreSQL: an event, told by the statement that opens the pass which ends it.

``read_gaps`` reads them.
"""

from __future__ import annotations

from sexton.terms import GAP_EVENT

TELL_GAP = "INSERT INTO events (at, actor, action, detail)"
GAP_TOLD = f"""'{GAP_EVENT}', jsonb_build_object('term', %(term)s::bigint, 'gap_from', %(gap_from)s::text)::text"""
HAS_GAP = "%(gap_from)s::text IS NOT NULL"
