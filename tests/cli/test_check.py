"""mercer check: what a model holds, or a sentence."""

import hashlib
import json

from tests.cli.calls import call


# check
def test_check_says_what_a_model_holds_and_predicts_nothing(folder, monkeypatch):
    monkeypatch.setattr("mercer.automl.model.TableModel.outputs", None)
    found = call("check", folder / "d.mercer", "--report", folder / "d.html")
    assert found.exit_code == 0, found.output
    digest = hashlib.sha256((folder / "d.mercer").read_bytes()).hexdigest()
    for word in (
        digest,
        f"id        {digest[:16]}",
        "table model, sound",
        "automl.TableModel",
        "of this model",
    ):
        assert word in found.stdout
    held = json.loads(call("check", folder / "d.mercer", "--json").stdout)
    assert held["sha256"] == digest
    assert held["classes"]["automl.TableModel"] == 1
    assert (
        sum(a["bytes"] for a in held["arrays"])
        < held["bytes"]
        == (folder / "d.mercer").stat().st_size
    )


def test_check_of_what_is_no_sound_model_is_a_sentence(folder, tmp_path):
    data = bytearray((folder / "d.mercer").read_bytes())
    data[-1] ^= 1
    (tmp_path / "bad").write_bytes(data)
    bad, foreign = (
        (tmp_path / "bad", 1, "is damaged"),
        (folder / "d.csv", 1, "was not written by Mercer"),
    )
    wrong = [bad, foreign, (tmp_path / "none", 2, "does not exist")]
    for path, status, says in wrong:
        found = call("check", path)
        assert found.exit_code == status
        assert says in found.stderr
    (tmp_path / "other.html").write_text("<p>0123456789abcdef")
    found = call("check", folder / "d.mercer", "--report", tmp_path / "other.html")
    assert found.exit_code == 1
    assert "is not the report of" in found.stderr
