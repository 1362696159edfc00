"""The ledger on SQLite: the embedded default, for one machine, tests and the simulator."""
