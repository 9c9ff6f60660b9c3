"""Which rank gets which samples: each once, on any number of ranks, in any number of parts."""

from hypothesis import given
from hypothesis import strategies as st

from trainer.sampler import Marked, StepSampler, share_of


def samplers(size: int, batch: int, ranks: int, parts: int) -> list[StepSampler]:
    """Return all ranks' samplers of `size` samples, in order."""
    return [
        StepSampler(range(size), batch, rank, ranks, accumulate=parts, shuffle=False)
        for rank in range(ranks)
    ]


def test_padding_is_marked_and_not_counted() -> None:
    """Ten samples on four ranks make twelve, of which two are marked as padding (case D7)."""
    shares = [share_of(list(range(10)), rank, 4) for rank in range(4)]
    assert shares == [[0, 4, 8], [1, 5, 9], [2, 6, ~2], [3, 7, ~3]]


def test_a_rank_without_a_sample_has_padding_only() -> None:
    """With fewer samples than ranks, the others repeat the first one, without weight."""
    assert [share_of([7], rank, 3) for rank in range(3)] == [[7], [~7], [~7]]


@given(
    size=st.integers(1, 60),
    batch=st.integers(1, 20),
    ranks=st.integers(1, 5),
    parts=st.integers(1, 4),
)
def test_each_sample_once_and_the_same_work_everywhere(
    size: int, batch: int, ranks: int, parts: int
) -> None:
    """Every sample is real once; all ranks have as many micro-batches of the same sizes."""
    epochs = [list(sampler) for sampler in samplers(size, batch, ranks, parts)]
    real = [index for epoch in epochs for micro in epoch for index in micro if index >= 0]
    assert sorted(real) == list(range(size))
    shapes = [[len(micro) for micro in epoch] for epoch in epochs]
    assert shapes == [shapes[0]] * ranks
    assert all(length > 0 for length in shapes[0])


@given(
    size=st.integers(1, 60),
    batch=st.integers(1, 20),
    ranks=st.integers(1, 5),
    parts=st.integers(1, 4),
)
def test_lengths_are_told_before(size: int, batch: int, ranks: int, parts: int) -> None:
    """`len`, `steps`, `micro_batches` and `real_samples` say what iteration then gives."""
    sampler, *_ = group = samplers(size, batch, ranks, parts)
    assert len(sampler) == len(list(sampler))
    assert sum(sampler.micro_batches(step) for step in range(sampler.steps)) == len(sampler)
    assert sum(sampler.real_samples(step) for step in range(sampler.steps)) == size
    assert max(sampler.micro_batches(step) for step in range(sampler.steps)) <= parts
    assert len(group) == ranks


def test_a_step_has_the_same_samples_on_any_number_of_ranks() -> None:
    """Step 1 of batches of 6 has samples 6 to 11, whether on 1, 2, 3 or 4 ranks."""
    for ranks in (1, 2, 3, 4):
        found = []
        for sampler in samplers(20, 6, ranks, 1):
            sampler.set_epoch(0, start=1)
            found += [index for index in next(iter(sampler)) if index >= 0]
        assert sorted(found) == [6, 7, 8, 9, 10, 11]


def test_an_epoch_can_begin_in_its_middle() -> None:
    """From step 2 on come the batches that a whole epoch has from there."""
    (sampler,) = samplers(20, 6, 1, 2)
    whole = list(sampler)
    sampler.set_epoch(0, start=2)
    assert list(sampler) == whole[4:]
    assert len(sampler) == len(whole[4:])


def test_items_say_whether_they_count() -> None:
    """A marked index gives its sample, and that it does not count."""
    data = Marked([("a", 0), ("b", 1)])
    assert (data[1], data[~1]) == (("b", 1, True), ("b", 1, False))
    assert len(data) == 2
