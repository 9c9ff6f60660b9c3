"""Measures strata beside what people would do otherwise, in one run."""

from strata.bench.measure import run_bench
from strata.bench.report import print_bench, print_recipes, results_path, write_bench

__all__ = ["print_bench", "print_recipes", "results_path", "run_bench", "write_bench"]
