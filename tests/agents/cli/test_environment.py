"""An agent's environment holds what was let in, and no secret of anybody else."""

from interlock.agents.cli.profiles import cleaned

OURS = {
    "PATH": "/bin",
    "HOME": "/home/me",
    "LC_ALL": "C",
    "https_proxy": "http://proxy",
    "AGENT_KEY": "k",
    "AGENT_KEY_OLD": "o",
    "CLOUD_SECRET": "s",
    "GH_TOKEN": "t",
    "DATABASE_URL": "postgres://me:pw@db",
    "path": "lower",
    "INTERLOCK_TAG": "w:1:1:a",
    "LD_PRELOAD": "/evil.so",
    "SSH_AUTH_SOCK": "/s",
}


def test_everyone_gets_what_programs_need_and_no_more() -> None:
    assert cleaned(OURS).keys() == {"PATH", "HOME", "LC_ALL", "https_proxy"}


def test_a_profile_lets_in_by_name_or_pattern() -> None:
    assert cleaned(OURS, ["AGENT_KEY"]).keys() - cleaned(OURS).keys() == {"AGENT_KEY"}
    assert "AGENT_KEY_OLD" in cleaned(OURS, ["AGENT_*"])
    assert cleaned(OURS, ["agent_*", "[", "NOSUCH"]) == cleaned(OURS)


def test_what_is_given_also_wins() -> None:
    assert cleaned(OURS, also={"HOME": "/none", "A": "1"})["HOME"] == "/none"
    assert OURS["HOME"] == "/home/me"
