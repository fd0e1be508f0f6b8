"""Saved models: JSON and arrays in one checked file, which never carries code."""
from mercer.store.files import load, save
from mercer.store.fingerprint import fingerprint
from mercer.store.registry import register
from mercer.store.saved import Saved
from mercer.store.tree import decode, encode

__all__ = ["Saved", "decode", "encode", "fingerprint", "load", "register", "save"]
