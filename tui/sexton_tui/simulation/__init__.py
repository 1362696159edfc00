"""A whole cluster on virtual time, from a seed: the product's own loops over SQLite in memory, with faults between
any two store calls.

Nothing here decides a tick: the loops do, as in production. `world` has time and turns, `processes` what is killed
and frozen, `switching_store` and `virtual_clock` are what a loop is given, `election` and `runs` stand for ZooKeeper
and for child processes, `faults` and `operator_actor` draw what goes wrong and what people do, `watch` and `judge`
find what must not be, `machines` and `cluster` put all together.

Beside them, without loops and stores: `rehearsal` (decisions about a user's own schedule, with gaps in the leading)
and `fleet` (what both strategies cost), over `filed_jobs`, both on the planner alone.
"""
