"""The console's view models: ledger values in, cleaned lines and cells out. Pure."""
