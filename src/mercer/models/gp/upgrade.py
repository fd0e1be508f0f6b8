"""Files written before a posterior was one value."""
from typing import Any


def upgraded(state: dict[str, Any]) -> dict[str, Any]:
    return state
