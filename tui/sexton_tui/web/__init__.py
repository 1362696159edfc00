"""The console in a browser: one process of it per tab, behind a guard of host, origin and token."""
