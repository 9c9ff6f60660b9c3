"""The parts of ddp-check.

Three kinds of processes: the supervisor (`main`, without torch) has the
watchdog and the report, the launcher holds torchrun's elastic agent, and one
`rank` process per rank runs the phases.  They share a folder of small files.
"""
