"""The ledger on PostgreSQL: what a cluster uses."""
