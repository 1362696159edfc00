"""Real servers and processes for the tests, and the one way to wait for something."""
