"""Starts containers as they should be started: a command, JupyterLab, an SSH server.

options -> settings (pure: the argv of `docker run`) -> start -> wait -> link or ssh command
"""
