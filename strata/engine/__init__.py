"""The Docker engine: the one that is there, one that we install, or one of our own."""

from strata.engine.connect import Engine, client
from strata.engine.facts import EngineFacts, check_engine
from strata.engine.find import ensure_engine, find_engine

__all__ = ["Engine", "EngineFacts", "check_engine", "client", "ensure_engine", "find_engine"]
