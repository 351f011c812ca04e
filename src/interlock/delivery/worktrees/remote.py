"""Trees of agents on other hosts: sent to them, and brought back, over a git remote.

The trees stay where they are, in our workspace; so do the checks and the merge branch. Before a
worker is asked, the tree's state is pushed to a ref of the dispatch. With its accepted reply comes
the name of the ref that it made for its work; only that one is fetched, and its files become the
tree's. Whatever another worker has pushed for the same dispatch is never looked at.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from interlock.agents.background import report_failure
from interlock.agents.carrier import Ask, Carrier, Checkout, Deliver, PushedWork, Reply
from interlock.agents.worker.carrier import WorkerCarrier
from interlock.delivery.config import DeliveryConfig
from interlock.delivery.worktrees.names import kept_ref
from interlock.delivery.worktrees.tree import TaskTree
from interlock.engine.circuit import CRASH
from interlock.system.errors import InterlockError, SourceError, UsageError
from interlock.system.git import date_variables
from interlock.system.git_remote import (
    check_remote,
    delete_remote_refs,
    fetch_commit,
    find_remote_ref,
    push_new_ref,
)

FindTree = Callable[[Ask], TaskTree]


class TreeExchange:
    """Sends trees to workers, and takes their work. Its functions block: for threads."""

    def __init__(self, remote: str, workspace: str, setup: Sequence[str] = ()) -> None:
        """`workspace` keeps runs of several databases apart, which may share a remote; `setup` is
        the command that prepares a tree."""
        self._remote = check_remote(remote)
        self._workspace = workspace
        self._setup = tuple(setup)

    def name_refs(self, ask: Ask) -> str:
        """How the refs of a dispatch begin."""
        run = f"{self._workspace}-{ask.run_id}"
        return f"refs/interlock/{run}/{ask.case_no}/{ask.dispatch_id}"

    def send_tree(self, ask: Ask, tree: TaskTree) -> Checkout:
        """Push the tree as it is, and say how a worker gets it. Sent again, as after a restart, it
        is what it was: the tree may hold the worker's answer by now."""
        repo, ref = tree.workspace.repo, f"{self.name_refs(ask)}-base"
        tree.workspace.restore_settings()
        commit = find_remote_ref(repo, self._remote, ref)
        if not commit:
            commit = tree.snapshot(f"{ask.case_id}: before {ask.step.lower()} {ask.attempt}").sha
            push_new_ref(repo, self._remote, commit, ref)
        return Checkout(
            remote=self._remote,
            commit=commit,
            ref=ref,
            folder=str(tree.root),
            inside=tree.workspace.source.prefix,
            branch=tree.branch.removeprefix("refs/heads/"),
            setup=self._setup,
            push=self.name_refs(ask) if ask.execution.writes else "",
        )

    def take_work(self, ask: Ask, tree: TaskTree, work: PushedWork) -> None:
        """Make the tree what the worker made of it. Its commits are kept, to be looked up; the
        branch has one of ours, on top of what we recorded before."""
        if not work.ref.startswith(f"{self.name_refs(ask)}-"):
            raise SourceError(f"the worker names {work.ref[:100]!r}, which is not its to make")
        workspace = tree.workspace
        workspace.restore_settings()
        keep = kept_ref(workspace.slug, work.commit)
        fetch_commit(workspace.repo, self._remote, work.commit, work.ref, keep)
        git = workspace.git
        made = git.read_line("rev-parse", f"{work.commit}^{{tree}}")
        if made == git.read_line("rev-parse", f"{tree.tip}^{{tree}}"):
            return
        message = f"{ask.case_id}: {ask.step.lower()} {ask.attempt}".encode()
        when = date_variables(workspace.clock())
        words = ("commit-tree", made, "-p", tree.tip)
        tree.restore(git.read_line(*words, stdin=message, env=when))

    def clean_up(self, ask: Ask, tree: TaskTree) -> None:
        """Nobody needs the refs of the dispatch any more."""
        delete_remote_refs(tree.workspace.repo, self._remote, f"{self.name_refs(ask)}-*")


class RemoteTreeCarrier:
    """A carrier before that of workers: asks go out with their tree, replies bring in theirs."""

    def __init__(
        self, fallback: WorkerCarrier, exchange: TreeExchange, find_tree: FindTree
    ) -> None:
        self.fallback = fallback
        self._exchange = exchange
        self._find_tree = find_tree
        self._open: dict[int, Ask] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._turns: dict[str, asyncio.Lock] = {}
        self._deliver: Deliver

    def start(self, deliver: Deliver) -> None:
        self._deliver = deliver
        self.fallback.start(self._receive)

    def send(self, asks: Sequence[Ask]) -> None:
        for ask in asks:
            self._open[ask.dispatch_id] = ask
            self._begin(self._send(ask))

    def settle(self, dispatch_id: int, error: str = "") -> None:
        self.fallback.settle(dispatch_id, error)
        ask = self._open.pop(dispatch_id, None)
        if ask is not None:
            self._begin(self._clean_up(ask))

    async def close(self) -> None:
        await self.fallback.close()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._open.clear()

    def account_of(self, role: str) -> str:
        return self.fallback.account_of(role)

    def keeps_answers(self) -> bool:
        return True

    def _begin(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(report_failure)

    async def _send(self, ask: Ask) -> None:
        try:
            checkout = await self._do(ask, self._exchange.send_tree)
        except (InterlockError, OSError) as error:
            self._fail(ask, error)
            return
        if self._open.get(ask.dispatch_id) is ask:
            context = msgspec.structs.replace(ask.execution, checkouts=(checkout,))
            self.fallback.send([msgspec.structs.replace(ask, execution=context)])

    def _receive(self, reply: Reply) -> None:
        ask = self._open.get(reply.dispatch_id)
        if ask is None or reply.pushed is None or reply.refused or reply.failure:
            self._deliver(reply)
        else:
            self._begin(self._take(ask, reply, reply.pushed))

    async def _take(self, ask: Ask, reply: Reply, work: PushedWork) -> None:
        try:
            await self._do(ask, self._exchange.take_work, work)
        except (InterlockError, OSError) as error:
            self._fail(ask, error)
            return
        if self._open.get(ask.dispatch_id) is ask:
            self._deliver(reply)

    async def _clean_up(self, ask: Ask) -> None:
        """What cannot be removed stays, and does no harm."""
        try:
            await self._do(ask, self._exchange.clean_up)
        except (InterlockError, OSError):
            return

    async def _do(self, ask: Ask, do: Callable[..., Any], *more: Any) -> Any:
        """In a thread; one tree's in turn."""
        tree = self._find_tree(ask)
        async with self._turns.setdefault(str(tree.root), asyncio.Lock()):
            return await asyncio.to_thread(do, ask, tree, *more)

    def _fail(self, ask: Ask, error: Exception) -> None:
        if self._open.get(ask.dispatch_id) is ask:
            self._deliver(Reply(ask.dispatch_id, failure=CRASH, reason=str(error)))


def check_workers(agents: Mapping[str, str], remote: str) -> None:
    """UsageError if workers on other hosts play a role, and there is no git remote to send them its
    tree."""
    roles = [role or "every role" for role, words in agents.items() if _is_worker(words)]
    if roles and not remote:
        raise UsageError(
            f"{roles[0]} is played by workers on other hosts, and there is no git remote to send "
            'them the files: set remote = "ADDRESS" in [delivery] of interlock.toml'
        )
    if remote:
        check_remote(remote)


def _is_worker(words: str) -> bool:
    return words.partition(":")[0] == "worker"


def connect_workers(
    carriers: Mapping[str, Carrier], config: DeliveryConfig, find_tree: FindTree
) -> dict[str, Carrier]:
    """The carriers, with trees sent along where workers on other hosts play a role."""
    work = config.work
    found = dict(carriers)
    made: dict[int, Carrier] = {}
    for role, carrier in carriers.items():
        if isinstance(carrier, WorkerCarrier):
            if id(carrier) not in made:
                check_workers({role: "worker"}, work.remote)
                exchange = TreeExchange(work.remote, config.workspace, work.setup)
                made[id(carrier)] = RemoteTreeCarrier(carrier, exchange, find_tree)
            found[role] = made[id(carrier)]
    return found
