"""What rows open into: screens on top of the panes."""
