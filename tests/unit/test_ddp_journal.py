"""The journal that outlives its rank."""

from pathlib import Path

import pytest

from ddp.findings import Finding
from ddp.journal import Journal, RankState, journal_file, read_journal


def test_a_missing_journal_is_a_rank_that_has_not_begun(tmp_path: Path) -> None:
    """No file means that nothing is known of the rank."""
    assert read_journal(journal_file(tmp_path, 3), 3) == RankState(rank=3)


def test_a_rank_that_went_through_is_done(tmp_path: Path) -> None:
    """Phases, device and end are read back."""
    file = journal_file(tmp_path, 0)
    journal = Journal(file)
    journal.begins("collectives")
    journal.device({"index": 0})
    with journal.waiting("all_reduce"):
        pass
    journal.passed("collectives", Finding("exact", {"values": 3}))
    journal.done()
    state = read_journal(file, 0)
    assert state.passed["collectives"][1] == Finding("exact", {"values": 3})
    assert (state.position, state.last, state.is_waiting) == (2, "all_reduce", False)
    assert (state.device, state.phase, state.is_done) == ({"index": 0}, "collectives", True)


def test_a_rank_whose_waiting_failed_still_waits(tmp_path: Path) -> None:
    """An error while waiting for others is told from an error of one's own."""
    journal = Journal(journal_file(tmp_path, 0))
    with pytest.raises(RuntimeError), journal.waiting("all_reduce"):
        raise RuntimeError
    journal.failed("connection closed")
    state = read_journal(journal_file(tmp_path, 0), 0)
    assert (state.is_waiting, state.failure, state.is_done) == (True, "connection closed", False)


def test_a_phase_that_was_not_run_has_a_reason_and_no_pass(tmp_path: Path) -> None:
    """It is kept apart from those that passed."""
    journal = Journal(journal_file(tmp_path, 0))
    journal.begins("gradients")
    journal.not_run("gradients", "no such thing here")
    state = read_journal(journal_file(tmp_path, 0), 0)
    assert (state.not_run, state.passed) == ({"gradients": "no such thing here"}, {})


def test_an_entry_cut_short_is_not_read(tmp_path: Path) -> None:
    """A rank killed while it writes leaves all entries before that one."""
    file = journal_file(tmp_path, 0)
    Journal(file).begins("training")
    with file.open("a") as cut:
        cut.write('{"t": 1.0, "ev')
    assert read_journal(file, 0).phase == "training"
