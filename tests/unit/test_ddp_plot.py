"""What a report is drawn as."""

from __future__ import annotations

import xml.etree.ElementTree as ET  # our own drawing is read
from typing import TYPE_CHECKING, Any

import pytest

from ddp.chart import Axis, linear_ticks, log_ticks
from ddp.errors import PhaseNotRun, Refused
from ddp.plot import must_be_writable, render_plot, size_label

if TYPE_CHECKING:
    from pathlib import Path

SVG = "{http://www.w3.org/2000/svg}"


def document() -> dict[str, Any]:
    """Return a report with two sizes of two collectives, and three numbers of ranks."""
    rows = [
        {"label": label, "size_bytes": size, "busbw_gb_per_s": speed}
        for label, size, speed in [
            ("all_reduce (sum)", 1024, 0.5),
            ("all_reduce (sum)", 1048576, 40.0),
            ("broadcast", 1024, 0.7),
            ("broadcast", 1048576, 60.0),
        ]
    ]
    scaling = [
        {"ranks": 1, "samples_per_s": 100.0},
        {"ranks": 2, "samples_per_s": 190.0},
        {"ranks": 4, "samples_per_s": 300.0},
    ]
    link = {"nvlinks": 18, "nvlink_gb_per_s": 450.0, "pcie_gb_per_s": 63.0}
    return {
        "label": "4 GPU, nccl",
        "world_size": 4,
        "facts": {"nvml": {"links": [link] * 4}},
        "phases": [
            {"name": "facts", "data": {}},
            {
                "name": "collectives",
                "data": {
                    "bandwidth": rows,
                    "limits": {"memory_copy_gb_per_s": 900.0, "peer_copy_gb_per_s": 270.0},
                },
            },
            {"name": "scaling", "data": {"rows": scaling}},
        ],
    }


def test_both_charts_are_drawn_with_their_numbers() -> None:
    """A dot for each measurement, a legend for each line, and the label in the titles."""
    drawn = ET.fromstring(render_plot(document()))  # noqa: S314 - our own drawing
    texts = [text.text for text in drawn.iter(f"{SVG}text")]
    assert len(list(drawn.iter(f"{SVG}circle"))) == 4 + 3
    assert "Bus bandwidth by message size (4 GPU, nccl, 4 ranks)" in texts
    assert "Throughput by ranks (4 GPU, nccl, 4 ranks)" in texts
    bounds = ("memory copy", "peer copy", "NVLink (nominal)", "ideal")
    for legend in ("all_reduce (sum)", "broadcast", "measured", *bounds):
        assert texts.count(legend) == 1
    dashes = [path.get("stroke-dasharray") for path in drawn.iter(f"{SVG}path")]
    in_legend = [dash for dash in dashes if dash][::2]
    assert len(in_legend) == len(bounds)
    assert len(set(in_legend[:3])) == 3  # bounds of one chart can be told apart
    assert {"1 KiB", "1 MiB", "1000", "GB/s", "samples/s", "400"} <= set(texts)


def test_a_point_lies_where_its_axes_say() -> None:
    """The first tick is 0, the last one 1; a logarithmic axis halves at the square root."""
    linear = Axis("ranks", (0.0, 2.0, 4.0), str, is_log=False)
    logarithmic = Axis("size", (1.0, 100.0), str, is_log=True)
    assert (linear.share(0.0), linear.share(1.0), linear.share(4.0)) == (0.0, 0.25, 1.0)
    assert logarithmic.share(10.0) == 0.5
    assert Axis("one", (3.0,), str, is_log=False).share(3.0) == 0.5


@pytest.mark.parametrize(
    ("values", "ticks"),
    [((0.5, 40.0), (0.1, 1.0, 10.0, 100.0)), ((10.0,), (10.0, 100.0))],
)
def test_powers_of_ten_enclose_the_values(
    values: tuple[float, ...], ticks: tuple[float, ...]
) -> None:
    """Nothing lies outside of the chart."""
    assert log_ticks(values) == pytest.approx(ticks)


@pytest.mark.parametrize(
    ("highest", "last", "count"), [(400.0, 400.0, 5), (7.0, 7.0, 8), (0.0, 0.0, 1)]
)
def test_linear_ticks_are_few_and_reach_the_highest(
    highest: float, last: float, count: int
) -> None:
    """From 0 on."""
    ticks = linear_ticks([highest])
    assert (ticks[0], ticks[-1], len(ticks)) == (0.0, last, count)


@pytest.mark.parametrize(
    ("size", "text"), [(512, "512 B"), (1024, "1 KiB"), (16777216, "16 MiB"), (1 << 40, "1024 GiB")]
)
def test_sizes_are_written_as_people_do(size: int, text: str) -> None:
    """In powers of 1024."""
    assert size_label(size) == text


def test_one_rank_has_no_bus_to_draw() -> None:
    """Bandwidths of 0 have no logarithm; the memory copy stays."""
    only = document()
    for row in only["phases"][1]["data"]["bandwidth"]:
        row["busbw_gb_per_s"] = 0.0
    texts = [text.text for text in ET.fromstring(render_plot(only)).iter(f"{SVG}text")]  # noqa: S314
    assert "memory copy" in texts
    assert "broadcast" not in texts


def test_a_check_that_measured_nothing_has_no_plot() -> None:
    """It says so instead of drawing an empty page."""
    with pytest.raises(PhaseNotRun):
        render_plot({"label": None, "world_size": None, "phases": [{"name": "facts", "data": {}}]})


def test_a_file_that_cannot_be_written_is_refused_first(tmp_path: Path) -> None:
    """Not after a minute of work; and asking leaves nothing behind, and changes nothing."""
    with pytest.raises(Refused) as refused:
        must_be_writable(tmp_path / "none/plot.svg")
    assert refused.value.where == "--plot"
    must_be_writable(tmp_path / "plot.svg")
    assert list(tmp_path.iterdir()) == []
    for kept in ("kept", ""):
        (tmp_path / "kept.svg").write_text(kept)
        must_be_writable(tmp_path / "kept.svg")
        assert (tmp_path / "kept.svg").read_text() == kept
