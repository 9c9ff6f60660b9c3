"""Words of the command line that Invoke itself cannot place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# Invoke has no positional argument that may be left out.
TAKE_AN_IMAGE = ("jupyter", "ssh")
FLAG = "--image"


def with_image_flags(words: Sequence[str], contexts: Iterable[Any]) -> list[str]:
    """Put `--image` before the image in `jupyter IMAGE` and `ssh IMAGE`.

    `contexts` are Invoke's parser contexts, one a task.  The name of a task
    stays one: it begins the next task.
    """
    flags = {context.name: context.flags for context in contexts}
    done: list[str] = []
    task, takes_value = "", False
    for word in words:
        is_value, takes_value = takes_value, False
        if is_value:
            pass
        elif word.startswith("-"):
            argument = flags.get(task, {}).get(word)
            takes_value = argument is not None and argument.takes_value
        elif word in flags:
            task = word
        elif task in TAKE_AN_IMAGE:
            done.append(FLAG)
        done.append(word)
    return done
