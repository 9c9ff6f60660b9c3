"""docs/training.md says what the image sets, and what the trainer can do."""

import ast
import re
from pathlib import Path

import yaml

from trainer.arguments import MODELS, parse

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs/training.md").read_text()
NOTHING = "–"  # noqa: RUF001 - what the table shows for a variable that the image leaves alone


def set_by_layers() -> set[str]:
    """Return the names of all variables that any layer's Dockerfile sets."""
    files = sorted((ROOT / "layers").glob("*/Dockerfile"))
    text = "\n".join(file.read_text() for file in files).replace("\\\n", " ")
    lines = re.findall(r"^ENV\s+(.*)$", text, re.MULTILINE)
    return {name for line in lines for name in re.findall(r"([A-Z_][A-Z0-9_]*)=", line)}


def table() -> dict[str, str]:
    """Return for each documented variable what the image's column says."""
    found = {}
    for line in TEXT.partition("## Environment variables")[2].splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 4:
            found.update(dict.fromkeys(re.findall(r"`([A-Z_0-9]+)`", cells[0]), cells[2]))
    return found


def test_the_layers_set_what_the_table_says_and_nothing_else() -> None:
    """Each ENV of a Dockerfile has its row, and each row with a value its ENV."""
    assert {name for name, value in table().items() if value != NOTHING} == set_by_layers()


def test_the_table_has_every_family() -> None:
    """Ranks, GPUs, threads, NCCL, gloo and torch's NCCL are in it, and not set by the image."""
    theirs = {name for name, value in table().items() if value == NOTHING}
    assert {
        *("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK", "LOCAL_RANK"),
        *("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES"),
        *("OMP_NUM_THREADS", "NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"),
        "TORCH_NCCL_ASYNC_ERROR_HANDLING",
    } <= theirs


def test_every_model_is_explained() -> None:
    """Each value of --model has its row."""
    assert [name for name in MODELS if f"| `{name}` |" not in TEXT] == []


def test_the_trainers_arguments_exist() -> None:
    """What follows `-m trainer` in the commands is taken by the trainer."""
    commands = TEXT.replace("\\\n", " ")
    found = re.findall(r"-m trainer((?: --[a-z-]+ [\w$\"-]+)+)", commands)
    assert len(found) >= 4
    for words in found:
        parse(words.split())


def test_the_examples_are_well_formed() -> None:
    """The Python example compiles, the manifests are YAML with a Service and a Job."""
    (python,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    ast.parse(python)
    (manifests,) = re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)
    assert [item["kind"] for item in yaml.safe_load_all(manifests)] == ["Service", "Job"]


def test_commands_that_restart_keep_attempts_apart() -> None:
    """Each block with --max-restarts sets what the page asks for with it."""
    blocks = re.findall(r"^```(?:sh|yaml)\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)
    restarting = [block for block in blocks if "--max-restarts" in block]
    assert len(restarting) == 4
    setting = re.compile(r"TORCH_DISABLE_SHARE_RDZV_TCP_STORE(=1|, value: \"1\")")
    assert [block for block in restarting if not setting.search(block)] == []
