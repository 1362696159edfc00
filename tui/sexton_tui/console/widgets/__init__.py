"""Widgets that draw the core's lines and rows."""
