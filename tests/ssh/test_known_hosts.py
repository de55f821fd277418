"""known_hosts files, next to what ssh-keygen makes of them."""

from __future__ import annotations

import subprocess
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from relay.client import ssh_known_hosts as known
from tests.support import sshd

KEY = "AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f"


def names_of(path: Path, name: str) -> int:
    return len(known.matching(known.entries([str(path)]), name))


def lines(path: Path, *texts: str) -> Path:
    path.write_text("".join(f"{text}\n" for text in texts))
    return path


def test_patterns_match_as_in_ssh(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "k", f"*.example.com,!bad.example.com ssh-ed25519 {KEY}", f"[box]:22?2,10.0.0.1 ssh-ed25519 {KEY}"
    )
    assert names_of(path, "good.example.com") == 1
    assert names_of(path, "GOOD.Example.com") == 1
    assert names_of(path, "bad.example.com") == 0
    assert names_of(path, "[box]:2222") == 1
    assert names_of(path, "box") == 0
    assert names_of(path, "10.0.0.1") == 1


def test_other_lines_are_passed_over(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "k",
        "",
        "# box ssh-ed25519 " + KEY,
        "box",
        "box ssh-ed25519",
        "box ssh-ed25519 ***",
        f"box ssh-ed25519 {KEY} comment",
    )
    assert names_of(path, "box") == 1
    assert known.entries([str(tmp_path / "missing")]) == []


def test_a_revoked_key_is_refused_and_an_authority_alone_vouches_for_nothing(tmp_path: Path) -> None:
    entries = known.entries([str(lines(tmp_path / "k", f"@revoked * ssh-ed25519 {KEY}", f"box ssh-ed25519 {KEY}"))])
    assert known.judge(entries, entries[0].key) == known.REVOKED
    entries = known.entries([str(lines(tmp_path / "k", f"@cert-authority * ssh-ed25519 {KEY}"))])
    assert known.judge(entries, b"another") == known.ONLY_AUTHORITY
    assert known.judge([], b"another") == known.UNKNOWN


def test_what_ssh_keygen_hashed_is_found_and_what_we_hash_it_finds(tmp_path: Path) -> None:
    key = sshd.make_key(tmp_path / "key")
    kind, text = Path(f"{key}.pub").read_text().split()[:2]
    path = lines(tmp_path / "k", f"[Box.example]:2222 {kind} {text}")
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", str(path)], check=True, capture_output=True)
    [entry] = known.matching(known.entries([str(path)]), "[box.example]:2222")
    assert known.judge([entry], entry.key) == known.KNOWN

    ours = tmp_path / "folder" / "ours"
    known.remember(str(ours), "box", kind, entry.key, hashed=True)
    found = subprocess.run(["ssh-keygen", "-F", "box", "-f", str(ours)], capture_output=True, text=True, check=True)
    assert text in found.stdout
    shown = subprocess.run(
        ["ssh-keygen", "-l", "-f", f"{key}.pub"], capture_output=True, text=True, check=True
    ).stdout
    assert known.fingerprint(entry.key) in shown
    assert (ours.stat().st_mode & 0o777, ours.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_a_file_without_a_last_line_break_is_not_damaged(tmp_path: Path) -> None:
    path = tmp_path / "k"
    path.write_text(f"one ssh-ed25519 {KEY}")
    known.remember(str(path), "two", "ssh-ed25519", b"key", hashed=False)
    assert names_of(path, "one") == names_of(path, "two") == 1


@given(st.lists(st.text(max_size=80), max_size=8), st.text(max_size=20))
def test_no_file_and_no_name_breaks_the_reader(tmp_path_factory: object, texts: list[str], name: str) -> None:
    path = tmp_path_factory.getbasetemp() / "any"  # type: ignore[attr-defined]
    path.write_text("\n".join(texts), encoding="utf-8", errors="replace")
    known.judge(known.matching(known.entries([str(path)]), name), b"key")
