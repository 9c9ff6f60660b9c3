"""The trainer's learning rate and threads."""

import pytest

from trainer.schedule import rate, steps_between
from trainer.threads import threads_per_rank


@pytest.mark.parametrize(
    ("step", "part"), [(0, 0.25), (2, 0.75), (3, 1.0), (8, 0.5), (13, 0.0), (99, 0.0)]
)
def test_the_rate_goes_up_and_down(step: int, part: float) -> None:
    """Three steps of warming up, then a cosine to 0 at step 13."""
    assert rate(step, 3, 13) == pytest.approx(part, abs=1e-12)


def test_without_warmup_the_first_step_has_the_full_rate() -> None:
    """No division by zero, also where the run is all warm-up."""
    assert rate(0, 0, 10) == 1.0
    assert rate(10, 10, 10) == 1.0


@pytest.mark.parametrize(
    ("pace", "steps"), [(0.0, 100), (0.001, 100), (0.1, 5), (0.3, 1), (0.5, 1), (60.0, 1)]
)
def test_ranks_ask_each_other_twice_a_second(pace: float, steps: int) -> None:
    """As many steps as half a second holds: one where they are slow, a hundred at most."""
    assert steps_between(pace) == steps


@pytest.mark.parametrize(
    ("environ", "cores", "ranks", "threads"),
    [
        ({}, 8, 2, 4),
        ({}, 2, 4, 1),
        ({"OMP_NUM_THREADS": "3"}, 8, 2, 3),
        ({"OMP_NUM_THREADS": "1"}, 8, 2, 4),  # torchrun's own default
        ({"OMP_NUM_THREADS": "1"}, 8, 1, 1),  # torchrun sets nothing for one rank
        ({"OMP_NUM_THREADS": "4,2"}, 8, 2, 4),
    ],
)
def test_threads_are_a_share_of_the_cores(
    environ: dict[str, str], cores: int, ranks: int, threads: int
) -> None:
    """OMP_NUM_THREADS is obeyed unless it is the 1 that torchrun sets."""
    assert threads_per_rank(environ, cores, ranks) == threads
