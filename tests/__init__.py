"""Sexton's tests, one folder per layer of proof; the services they need start themselves (tests/support)."""
