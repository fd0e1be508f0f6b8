"""Fingerprints do not depend on what is one in memory."""

import numpy as np

from mercer.store import fingerprint


def test_fingerprints_do_not_depend_on_what_is_one_in_memory():
    a = np.arange(5.0)
    assert (
        fingerprint([a, a]) == fingerprint([a, a.copy()]) == fingerprint([np.asfortranarray(a), a])
    )
    assert fingerprint([a, a]) != fingerprint([a, a + 1])
    assert fingerprint(a) != fingerprint(a.astype(np.float32))
