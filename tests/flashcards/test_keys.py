import pytest
from typer.testing import CliRunner

from flashcards import Client
from flashcards.cli import app
from flashcards.contract.tokens import hint, is_token, new_token
from flashcards.errors import Forbidden, Unauthorized


@pytest.fixture
def run(locked, admin_key):
    def run(*words, exit_code: int = 0, key: str = admin_key):
        environment = {"FLASHCARDS_URL": locked.url, "FLASHCARDS_KEY": key}
        done = CliRunner().invoke(app, list(words), env=environment)
        assert done.exit_code == exit_code, done.output
        return done

    return run


class TestTokens:
    def test_each_is_new_and_well_formed(self):
        made = {new_token() for _ in range(100)}
        assert len(made) == 100
        assert all(is_token(token) for token in made)
        assert len({len(token) for token in made}) == 1

    def test_one_wrong_character_is_seen(self):
        token = new_token()
        for place in range(3, len(token)):
            other = "a" if token[place] != "a" else "b"
            assert not is_token(token[:place] + other + token[place + 1 :])

    @pytest.mark.parametrize("text", ["", "fc_", "x" * 52, "fc_" + "0" * 48, "fc_" + "é" * 49])
    def test_other_texts_are_none(self, text):
        assert not is_token(text)

    def test_the_hint_gives_little_away(self):
        token = new_token()
        assert token.startswith(hint(token))
        assert len(hint(token)) == 9


def test_a_client_with_a_key(locked, admin_key):
    with Client(locked.url, key=admin_key) as client:
        made = client.keys.create("pipeline", scopes=["read"], max_unfinished_jobs=3)
        assert made.max_unfinished_jobs == 3
        assert made.id in [key.id for key in client.keys.each()]
        with Client(locked.url, key=made.key) as reader:
            reader.jobs.list()
            with pytest.raises(Forbidden):
                reader.submit({"kind": "noop"})
            client.keys.delete(made.id)
            with pytest.raises(Unauthorized):
                reader.jobs.list()


def test_the_key_comes_from_the_environment(locked, admin_key, monkeypatch):
    monkeypatch.setenv("FLASHCARDS_KEY", admin_key)
    with Client(locked.url) as client:
        client.jobs.list()


def test_a_key_that_no_header_can_carry_is_refused_at_once():
    with pytest.raises(ValueError, match="not a key"):
        Client("http://127.0.0.1:1", key="two words")


def test_a_life_on_the_command_line(run, locked):
    assert is_token(run("keys", "generate").stdout.strip())
    made = run("keys", "create", "ci", "--scope", "read", "--days", "30", "--no-retain-data")
    key = made.stdout.strip()
    assert is_token(key)
    id = made.stderr.split(":")[0]
    assert "deleted when its job has ended" in run("keys", "show", id).stdout
    assert id in run("keys", "ls").stdout
    run("jobs", "ls", key=key)
    run("keys", "revoke", id)
    assert "revoked" in run("jobs", "ls", key=key, exit_code=1).stderr


def test_an_unknown_scope_is_said(run):
    assert "scopes" in run("keys", "create", "x", "--scope", "root", exit_code=1).stderr
