"""The store's address: what is refused, and what TLS it means."""

from __future__ import annotations

from pathlib import Path

import pytest

from artoo.contracts.errors import ConfigurationError
from artoo.runtime.config.loader import load_config
from artoo.store.address import parse


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("mysql://db/artoo", "PostgreSQL"),
        ("postgresql://artoo:secret@db/artoo", "ARTOO_STORE_PASSWORD"),
        ("postgresql://artoo@db/artoo?password=secret", "ARTOO_STORE_PASSWORD"),
        ("postgresql://artoo@db", "no database"),
        ("postgresql://[::1/artoo", "no address"),
        ("postgresql://artoo:pass/secret@db/artoo", "ARTOO_STORE_PASSWORD"),
        ("postgresql://artoo:1/secret@db/artoo", "ARTOO_STORE_PASSWORD"),
        ("postgresql://artoo:pass?secret@db/artoo", "ARTOO_STORE_PASSWORD"),
        ("postgresql://artoo:pass#secret@db/artoo", "ARTOO_STORE_PASSWORD"),
        ("postgresql://artoo:secret\u2100@db/artoo", "no address"),
        ("postgresql://artoo@db/artoo?sslpassword=secret", "ARTOO_STORE_PASSWORD"),
        ("mysql://db/artoo?password=secret", "PostgreSQL"),
        ("artoo:secret@db/artoo", "PostgreSQL"),
        ("host=db dbname=artoo password=secret", "PostgreSQL"),
    ],
)
def test_a_wrong_address_is_refused_with_what_to_do(url: str, said: str) -> None:
    """Another scheme, a password in sight, no database: each is named, and no password is repeated."""
    with pytest.raises(ConfigurationError, match=said) as refused:
        parse(url)
    assert "secret" not in str(refused.value)


def test_a_password_of_another_scheme_is_not_repeated() -> None:
    """Whatever the address is, what may be its password is not shown."""
    with pytest.raises(ConfigurationError) as refused:
        parse("https://artoo:secret@db/artoo")
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://db.example.org/artoo",
        "postgresql://artoo@db.example.org:5433/artoo",
        "postgresql://127.0.0.1,db.example.org/artoo",
        "postgresql:///artoo?host=db.example.org",
        "postgresql://[2001:db8::1]:5432/artoo",
        "postgresql://localhost/artoo?hostaddr=192.0.2.1",
        "postgresql:///artoo?service=team",
    ],
)
def test_another_machine_is_verified_by_default(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond this machine TLS is used and the server's name is checked, one host of several being enough."""
    monkeypatch.setenv("HOME", str(tmp_path))
    assert parse(url).settings({}) == {"sslmode": "verify-full", "sslrootcert": "system"}


@pytest.mark.parametrize(
    "url",
    [
        "postgresql:///artoo",
        "postgresql://localhost/artoo",
        "postgresql://127.0.0.1:5433/artoo",
        "postgresql://[::1]/artoo",
        "postgresql://%2Fvar%2Frun/artoo",
        "postgresql:///artoo?host=/var/run/postgresql",
    ],
)
def test_this_machine_needs_no_certificate(url: str) -> None:
    """A socket or the loopback is reached as libpq would."""
    assert parse(url).settings({}) == {}


@pytest.mark.parametrize("name", ["PGHOST", "PGHOSTADDR", "PGSERVICE"])
def test_what_the_environment_says_to_libpq_counts(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An address without a host goes where the environment says, and is verified there."""
    monkeypatch.setenv("HOME", str(tmp_path))
    given = parse("postgresql:///artoo").settings({name: "192.0.2.1"})
    assert given == {"sslmode": "verify-full", "sslrootcert": "system"}


def test_the_address_may_lower_the_check_itself() -> None:
    """What the operator writes into the address holds."""
    assert parse("postgresql://db/artoo?sslmode=require").settings({}) == {"sslmode": "require"}


def test_the_own_root_certificate_is_used_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A certificate in libpq's place is what the server is checked against."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".postgresql").mkdir()
    (tmp_path / ".postgresql/root.crt").write_text("")
    assert parse("postgresql://db/artoo").settings({}) == {"sslmode": "verify-full"}


def test_the_password_comes_from_the_environment() -> None:
    """ARTOO_STORE_PASSWORD stands over PGPASSWORD."""
    given = {"ARTOO_STORE_PASSWORD": "one", "PGPASSWORD": "two"}
    assert parse("postgresql:///artoo").settings(given) == {"password": "one"}


def test_the_store_is_a_setting(tmp_path: Path) -> None:
    """`store:` and ARTOO_STORE say where it is; a mistake is named like any other."""
    environ = {"ARTOO_HOME": str(tmp_path), "ARTOO_STORE": "postgresql:///artoo"}
    assert load_config(environ).store == "postgresql:///artoo"
    (tmp_path / "config.yaml").write_text("store: postgresql://me:pass@db/artoo\n")
    with pytest.raises(ConfigurationError, match=r"config\.yaml.*ARTOO_STORE_PASSWORD"):
        load_config({"ARTOO_HOME": str(tmp_path)})
