"""Variables that were once set for a reason and forgotten."""

from __future__ import annotations

from dataclasses import replace

import pytest

from doctor.facts import Setting
from doctor.judge_settings import judge_choice, judge_debugging, judge_renamed, judge_transports
from tests.unit.doctor_machines import DGX, LAPTOP, with_nvidia, with_settings


@pytest.mark.parametrize(
    ("settings", "severity"),
    [
        ({}, "ok"),
        ({"NCCL_P2P_DISABLE": "1"}, "warning"),
        ({"NCCL_P2P_DISABLE": "0"}, "ok"),
        ({"NCCL_SHM_DISABLE": "1"}, "warning"),
        ({"NCCL_P2P_LEVEL": "LOC"}, "warning"),
        ({"NCCL_P2P_LEVEL": "NVL"}, "ok"),
    ],
)
def test_transports_that_are_off(settings: dict[str, str], severity: str) -> None:
    """A transport between GPUs that is turned off costs speed."""
    assert judge_transports(with_settings(DGX, **settings)).severity == severity


def test_the_source_of_a_setting_is_told() -> None:
    """What an administrator's file sets is not in the environment: the finding says where."""
    settings = {"NCCL_P2P_DISABLE": Setting("1", "/etc/nccl.conf")}
    finding = judge_transports(replace(DGX, settings=settings))
    assert finding.evidence.startswith("NCCL_P2P_DISABLE=1 (/etc/nccl.conf): ")
    assert finding.fix == "unset NCCL_P2P_DISABLE"


@pytest.mark.parametrize(
    ("settings", "severity", "words"),
    [
        ({"NCCL_DEBUG": "WARN"}, "ok", "nothing is left on"),
        ({"NCCL_DEBUG": "INFO"}, "info", "every rank writes much"),
        ({"NCCL_DEBUG": "1"}, "warning", "NCCL_DEBUG=1 (the environment) is no level"),
        ({"NCCL_DEBUG_FILE": "/tmp/nccl.%h.%p"}, "ok", "nothing is left on"),  # noqa: S108
        ({"NCCL_DEBUG_FILE": "/tmp/nccl"}, "info", "over each other's lines"),  # noqa: S108
        ({"CUDA_LAUNCH_BLOCKING": "1"}, "warning", "kernels wait for each other"),
        ({"TORCH_DISTRIBUTED_DEBUG": "DETAIL"}, "warning", "every collective is checked first"),
        ({"TORCH_DISTRIBUTED_DEBUG": "INFO"}, "ok", "nothing is left on"),
        ({"NCCL_ALGO": "Ring"}, "info", "NCCL would choose"),
        ({"NCCL_PROTO": "Simple"}, "info", "NCCL would choose"),
        ({"CUDA_LAUNCH_BLOCKING": "0"}, "ok", "nothing is left on"),
    ],
)
def test_debugging_that_is_left_on(settings: dict[str, str], severity: str, words: str) -> None:
    """What costs speed or means nothing is found."""
    finding = judge_debugging(with_settings(LAPTOP, **settings))
    assert finding.severity == severity
    assert words in finding.evidence


def test_a_log_that_can_not_be_written_is_found() -> None:
    """The file's fault is a warning with the variable's name."""
    machine = replace(LAPTOP, blocked={"NCCL_DEBUG_FILE": "/no/log can't be written to"})
    finding = judge_debugging(machine)
    assert finding.severity == "warning"
    assert finding.evidence == "NCCL_DEBUG_FILE: /no/log can't be written to"


@pytest.mark.parametrize(
    ("settings", "severity"),
    [
        ({}, "ok"),
        ({"TORCH_NCCL_BLOCKING_WAIT": "1"}, "ok"),
        ({"NCCL_BLOCKING_WAIT": "1"}, "warning"),
        ({"NCCL_ASYNC_ERROR_HANDLING": "1"}, "warning"),
        (
            {"NCCL_ASYNC_ERROR_HANDLING": "1", "TORCH_NCCL_ASYNC_ERROR_HANDLING": "1"},
            "ok",
        ),
        (
            {"NCCL_ASYNC_ERROR_HANDLING": "1", "TORCH_NCCL_ASYNC_ERROR_HANDLING": "3"},
            "warning",
        ),
    ],
)
def test_old_names_are_found(settings: dict[str, str], severity: str) -> None:
    """An old name alone, or one that contradicts the new one, is a warning."""
    assert judge_renamed(with_settings(LAPTOP, **settings)).severity == severity


def test_the_new_name_is_told() -> None:
    """The fix can be pasted."""
    finding = judge_renamed(with_settings(LAPTOP, NCCL_BLOCKING_WAIT="1"))
    assert finding.fix == "rename it: TORCH_NCCL_BLOCKING_WAIT=1"


@pytest.mark.parametrize(
    ("value", "severity"),
    [
        ("0,1,7", "ok"),
        ("0,8", "error"),
        ("GPU-8932f937-d72c-4106-c12f-20bd9faed9f6", "ok"),
        ("all", "error"),
        ("", "ok"),
        ("-1", "ok"),
    ],
)
def test_chosen_gpus_exist(value: str, severity: str) -> None:
    """CUDA drops an index that is not there, and all after it."""
    assert judge_choice(with_settings(DGX, CUDA_VISIBLE_DEVICES=value)).severity == severity


def test_a_container_that_refuses_gpus_is_told_of() -> None:
    """NVIDIA_VISIBLE_DEVICES=void keeps GPUs out."""
    machine = with_settings(with_nvidia(DGX, nodes=()), NVIDIA_VISIBLE_DEVICES="void")
    assert judge_choice(machine).severity == "info"
