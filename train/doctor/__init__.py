"""What keeps training from working, or makes it slow, on this machine; with the fix.

It imports nothing of strata: it runs in the image.  `probe_*` read, `judge_*`
are pure, `checks` is the table that joins them.
"""
