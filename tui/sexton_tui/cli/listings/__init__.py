"""The commands that only read: what the console shows, printed."""
