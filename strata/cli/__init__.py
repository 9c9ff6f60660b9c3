"""The tasks, as Invoke finds them: each parses its arguments, calls, and reports."""

from invoke import Collection

from strata.cli import make, prove, show, upkeep

namespace = Collection.from_module(make)
for module in (show, prove, upkeep):
    for task in Collection.from_module(module).tasks.values():
        namespace.add_task(task)
