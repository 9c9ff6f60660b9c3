"""Tasks that prove strata itself: test, bench."""

from __future__ import annotations
