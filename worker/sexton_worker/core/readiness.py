"""Whether a worker takes claims now, as far as it knows itself."""

from __future__ import annotations


def unreadiness(
    *, is_registered: bool, is_away: bool, is_draining: bool, paused: float, silent_for: float | None, allowed: float
) -> tuple[str, ...]:
    """Why it is not ready, each a sentence; none: it is. ``paused``: seconds for which its machine takes no claims;
    ``silent_for``: since its loop came round, of ``allowed``."""
    silent = silent_for is not None and silent_for > allowed
    return tuple(
        why
        for holds, why in (
            (is_draining, "it drains: it takes no more claims"),
            (silent, f"its loop has not come round for {silent_for or 0:.0f} s"),
            (is_away, "the database does not answer"),
            (not is_registered and not is_away, "the database does not know it yet"),
            (paused > 0, f"this machine could not start a run: it takes claims again in {paused:.0f} s"),
        )
        if holds
    )
