"""Phase: what every collective gives, beside what it must give, and how fast it is."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import torch
from torch import distributed

from ddp.bandwidth import GIGA, KIB, MIB, measure, sizes
from ddp.errors import PhaseFailed
from ddp.findings import Finding
from ddp.links import bounds_of
from ddp.patterns import EXACT
from ddp.thresholds import best_busbw
from ddp.trials import TRIALS, Trial, Values

if TYPE_CHECKING:
    from ddp.context import Context

LARGEST = {"gloo": 16 * MIB, "nccl": 256 * MIB}
# Each type's values are compared at these sizes and the backend's largest; float32's at
# all that are timed, too.
COMPARED = (KIB, 4 * KIB + 8, MIB)
TIMED_DTYPE = "float32"
# A size is timed over this many calls: small ones first.
QUICK_CALLS, FULL_CALLS = (5, 2), (20, 5)
FEW_BYTES = MIB
COPIED_BYTES = 64 * MIB
COPIES = 3
# What gloo may lack, by the version of torch; without the others nothing trains.
OPTIONAL = ("all_to_all", "reduce_scatter")
OPTIONAL_DTYPES = ("bfloat16", "float16")


def check_collectives(context: Context) -> Finding:
    """Compare each collective with its closed form, exactly, and time it in float32.

    A time is the slowest rank's mean over some calls.  What the backend lacks
    is listed under `unsupported`; NCCL may lack nothing.
    """
    unsupported: list[str] = []
    rows: list[dict[str, Any]] = []
    for label, (operation, _) in TRIALS.items():
        for dtype in EXACT:
            try:
                rows += _try(context, label, operation, dtype)
            except RuntimeError as error:
                if not _may_lack(context, operation, dtype, error):
                    raise
                unsupported.append(f"{label} of {dtype}")
    _share_slowest(context, rows)
    limits = _copy_speeds(context)
    bounds = bounds_of(limits, context.plan.facts["nvml"]["links"])
    beside = ", ".join(f"{name} {speed:.2f}" for name, speed in bounds.items())
    return Finding(
        f"{_listing(unsupported)}; bus bandwidth of all_reduce at best {best_busbw(rows):.2f} "
        f"GB/s, beside {beside} GB/s",
        {"bandwidth": rows, "limits": limits, "unsupported": unsupported},
    )


def _try(context: Context, label: str, operation: str, dtype: str) -> list[dict[str, Any]]:
    """Run one collective in one type at all its sizes; return what was timed."""
    is_timed = dtype == TIMED_DTYPE
    largest = LARGEST[context.plan.backend]
    rows = []
    timed = sizes(largest, is_full=context.is_full) if is_timed else ()
    for size in sorted({*COMPARED, largest, *timed}):
        values = Values(context.rank, context.world_size, dtype, context.device, size)
        trial = TRIALS[label][1](values)
        with context.journal.waiting(f"{label} of {dtype}, {trial.size_bytes} bytes"):
            trial.call()
            finish(context)
        if context.fault == f"wrong-{_fault(label)}":
            trial.result[-1] += 1
        _compare(trial, f"{label} of {dtype}")
        if size in timed:
            seconds = _time(context, trial)
            row = measure(operation, trial.size_bytes, seconds, context.world_size)
            rows.append({"label": label, "operation": operation, **row})
    return rows


def _fault(label: str) -> str:
    return {"all_reduce (sum)": "sum", "all_reduce (max)": "max"}.get(
        label, label.replace("_", "-")
    )


def _time(context: Context, trial: Trial) -> float:
    few, many = FULL_CALLS if context.is_full else QUICK_CALLS
    calls = few if trial.size_bytes <= FEW_BYTES else many
    with context.journal.waiting("the timed calls"):
        distributed.barrier()
        finish(context)
        began = time.perf_counter()
        for _ in range(calls):
            trial.call()
        finish(context)
        return (time.perf_counter() - began) / calls


def finish(context: Context) -> None:
    """Wait for the device: NCCL's calls return before they are done."""
    if context.device.type == "cuda":
        torch.cuda.synchronize(context.device)


def _compare(trial: Trial, what: str) -> None:
    wrong = (trial.result != trial.expected).nonzero().flatten()
    if len(wrong) > 0:
        first = int(wrong[0])
        raise PhaseFailed(
            f"{what} is wrong in {len(wrong)} of {len(trial.result)} values: value {first} is "
            f"{trial.result[first].item()}, expected {trial.expected[first].item()}"
        )


def _may_lack(context: Context, operation: str, dtype: str, error: RuntimeError) -> bool:
    is_optional = operation in OPTIONAL or dtype in OPTIONAL_DTYPES
    texts = ("not support", "unsupported", "not implemented", "Invalid scalar type")
    is_lack = any(text in str(error) for text in texts)
    return context.plan.backend == "gloo" and is_optional and is_lack


def _share_slowest(context: Context, rows: list[dict[str, Any]]) -> None:
    """Put the slowest rank's time into every row."""
    times = torch.tensor([row["seconds"] for row in rows], dtype=torch.float64)
    times = times.to(context.device)
    with context.journal.waiting("all_reduce of times"):
        distributed.all_reduce(times, distributed.ReduceOp.MAX)
        slowest = times.tolist()
    for row, seconds in zip(rows, slowest):  # noqa: B905 - `strict` needs Python 3.10
        row.update(measure(row["operation"], row["size_bytes"], seconds, context.world_size))


def _copy_speeds(context: Context) -> dict[str, float]:
    """Return what bounds a collective here, in GB/s: each byte copied counts once.

    `peer_copy_gb_per_s` is from this rank's GPU to another, where rank 0 may.
    """
    with context.journal.waiting("the copying of all ranks' memory"):
        distributed.barrier()
        finish(context)
    limits = {"memory_copy_gb_per_s": _copy_speed(context, context.device)}
    peers = torch.cuda.device_count() if context.device.type == "cuda" else 0
    if context.rank == 0 and peers > 1:
        peer = (context.local_rank + 1) % peers
        if torch.cuda.can_device_access_peer(context.local_rank, peer):
            limits["peer_copy_gb_per_s"] = _copy_speed(context, torch.device("cuda", peer))
    return limits


def _copy_speed(context: Context, target: Any) -> float:  # noqa: ANN401 - a device
    source = torch.ones(COPIED_BYTES, dtype=torch.uint8, device=context.device)
    copy = torch.zeros(COPIED_BYTES, dtype=torch.uint8, device=target)
    best = 0.0
    for _ in range(COPIES):
        finish(context)
        began = time.perf_counter()
        copy.copy_(source)
        finish(context)
        best = max(best, COPIED_BYTES / (time.perf_counter() - began) / GIGA)
    return best


def _listing(unsupported: list[str]) -> str:
    names = ", ".join(TRIALS)
    lacks = f" (this backend has no {', no '.join(unsupported)})" if unsupported else ""
    return f"{names} are exact in {', '.join(EXACT)}{lacks}"
