"""Trees of agents on other hosts: sent to them, and brought back, over a git remote.

The trees stay where they are, in our workspace; so do the checks and the merge branch. Before a
worker is asked, the tree's state is pushed to a ref of the dispatch. With its accepted reply comes
the name of the ref that it made for its work; only that one is fetched, and its files become the
tree's. Whatever another worker has pushed for the same dispatch is never looked at.
"""

from collections.abc import Callable, Mapping, Sequence

import msgspec

from interlock.carriers.contract import Ask, Carrier, Checkout, Reply
from interlock.carriers.exchange import ExchangeCarrier, name_refs
from interlock.system.errors import SourceError, UsageError
from interlock.system.git import date_variables
from interlock.system.git_remote import (
    check_remote,
    delete_remote_refs,
    fetch_commit,
    find_remote_ref,
    push_new_ref,
)
from interlock_delivery.config import DeliveryConfig
from interlock_delivery.worktrees.names import kept_ref
from interlock_delivery.worktrees.tree import TaskTree

_WORKER = "worker"
"""The agent whose work is done on other hosts, as users name it."""
FindTree = Callable[[Ask], TaskTree]


class TreeExchange:
    """Sends trees to workers, and takes their work."""

    def __init__(
        self, remote: str, workspace: str, find_tree: FindTree, setup: Sequence[str] = ()
    ) -> None:
        """`workspace` keeps runs of several databases apart, which may share a remote; `setup` is
        the command that prepares a tree."""
        self._remote = check_remote(remote)
        self._workspace = workspace
        self._find_tree = find_tree
        self._setup = tuple(setup)

    def name_place(self, ask: Ask) -> str:
        return str(self._find_tree(ask).root)

    def send(self, ask: Ask) -> Ask:
        """Push the tree as it is, and say how a worker gets it. Sent again, as after a restart, it
        is what it was: the tree may hold the worker's answer by now."""
        tree = self._find_tree(ask)
        repo, ref = tree.workspace.repo, f"{name_refs(self._workspace, ask)}-base"
        tree.workspace.restore_settings()
        commit = find_remote_ref(repo, self._remote, ref)
        if not commit:
            commit = tree.snapshot(f"{ask.case_id}: before {ask.step.lower()} {ask.attempt}").sha
            push_new_ref(repo, self._remote, commit, ref)
        checkout = Checkout(
            remote=self._remote,
            commit=commit,
            ref=ref,
            folder=str(tree.root),
            inside=tree.workspace.source.prefix,
            branch=tree.branch.removeprefix("refs/heads/"),
            setup=self._setup,
            push=name_refs(self._workspace, ask) if ask.execution.writes else "",
        )
        context = msgspec.structs.replace(ask.execution, checkouts=(checkout,))
        return msgspec.structs.replace(ask, execution=context)

    def take(self, ask: Ask, reply: Reply) -> Reply:
        """Make the tree what the worker made of it. Its commits are kept, to be looked up; the
        branch has one of ours, on top of what we recorded before."""
        work = reply.pushed
        if work is None or not work.ref.startswith(f"{name_refs(self._workspace, ask)}-"):
            named = work.ref[:100] if work else ""
            raise SourceError(f"the worker names {named!r}, which is not its to make")
        tree = self._find_tree(ask)
        workspace = tree.workspace
        workspace.restore_settings()
        keep = kept_ref(workspace.slug, work.commit)
        fetch_commit(workspace.repo, self._remote, work.commit, work.ref, keep)
        git = workspace.git
        made = git.read_line("rev-parse", f"{work.commit}^{{tree}}")
        if made != git.read_line("rev-parse", f"{tree.tip}^{{tree}}"):
            message = f"{ask.case_id}: {ask.step.lower()} {ask.attempt}".encode()
            when = date_variables(workspace.clock())
            words = ("commit-tree", made, "-p", tree.tip)
            tree.restore(git.read_line(*words, stdin=message, env=when))
        return reply

    def clean_up(self, ask: Ask) -> None:
        repo = self._find_tree(ask).workspace.repo
        delete_remote_refs(repo, self._remote, f"{name_refs(self._workspace, ask)}-*")


def check_workers(agents: Mapping[str, str], remote: str) -> None:
    """Raise UsageError if workers on other hosts play a role, and no git remote can bring them its
    tree."""
    roles = [
        role or "every role" for role, words in agents.items() if words.partition(":")[0] == _WORKER
    ]
    if roles and not remote:
        raise UsageError(
            f"{roles[0]} is played by workers on other hosts, and there is no git remote to send "
            'them the files: set remote = "ADDRESS" in [delivery] of interlock.toml'
        )
    if remote:
        check_remote(remote)


def connect_workers(
    carriers: Mapping[str, Carrier], config: DeliveryConfig, find_tree: FindTree
) -> dict[str, Carrier]:
    """Return the carriers, with trees sent along where agents on other hosts play a role."""
    work = config.work
    found = dict(carriers)
    made: dict[int, Carrier] = {}
    for role, carrier in carriers.items():
        if carrier.traits.elsewhere:
            if id(carrier) not in made:
                check_workers({role: _WORKER}, work.remote)
                exchange = TreeExchange(work.remote, config.workspace, find_tree, work.setup)
                made[id(carrier)] = ExchangeCarrier(carrier, exchange)
            found[role] = made[id(carrier)]
    return found
