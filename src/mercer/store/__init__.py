"""Saved models: JSON and arrays in one checked file, which never carries code."""

from mercer.store.audit import Audit, audit, fingerprint
from mercer.store.commit import commit
from mercer.store.files import Saved, load, save
from mercer.store.registry import register
from mercer.store.tree import decode, encode

__all__ = [
    "Audit",
    "Saved",
    "audit",
    "commit",
    "decode",
    "encode",
    "fingerprint",
    "load",
    "register",
    "save",
]
