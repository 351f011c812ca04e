"""A month of a project's pipelines, drawn from a seed, with the truth about every test kept aside.

Pull requests of one to three commits are merged; some merges go through a queue. Every merge is
tested in two variants and two shards, failures are tried again within the job, some runs are
repeated as a second attempt, some never happen, and some fall to a broken machine. Flaky tests
fail by chance; regressions come with a commit and go with a later merge; tests are born failing.
"""

import random
from pathlib import Path
from typing import NamedTuple

from history_tests.uploads import DAY, Upload
from interlock.system.git import SEED, Git
from interlock_rca.ci_run import CiRun, Scope

START = 1_790_000_000.0
VARIANTS = ("linux", "macos")


class Regression(NamedTuple):
    """A test that fails from one merge on to another, because of one commit."""

    test: str
    culprit: str
    first: int
    last: int
    is_born: bool


class Month:
    """Merges, what was uploaded for them, and what is true."""

    def __init__(self, folder: Path, seed: int, merges: int = 60, tests: int = 24) -> None:
        self.chance = random.Random(seed)
        self.folder = folder
        self.tests = [f"shop.part{n % 5}::test_{n}" for n in range(tests)]
        rates = (0.3, 0.15, 0.1)
        self.flaky = dict(zip(self.chance.sample(self.tests[:-8], 3), rates, strict=True))
        self.steady = [test for test in self.tests[:-8] if test not in self.flaky]
        self.merges: list[str] = []
        """Commits of the default branch, the oldest first."""
        self.brought: list[list[str]] = []
        """The commits of the pull request that each of them merged."""
        self._write_repository(merges)
        self.regressions = self._plant(merges)
        self.uploads: list[Upload] = []
        self.tested: set[int] = set()
        """The merges with results that teach something."""
        self.flips: dict[tuple[str, str], set[int]] = {}
        """Of each test and variant, the merges on which it passed and failed."""
        self._seen: dict[tuple[str, str, int], set[str]] = {}
        self._run_pipelines()

    def _write_repository(self, merges: int) -> None:
        git = Git(self.folder, SEED)
        git.read_line("init", "--quiet", "--template=")
        parts, mark, tip = [b"reset refs/heads/main\n"], 0, 0
        marks: list[tuple[list[int], int]] = []
        for number in range(merges):
            own: list[int] = []
            for at in range(self.chance.randint(1, 3)):
                mark += 1
                parent = own[-1] if own else tip
                parts.append(_write_commit(mark, f"work {number}.{at}", [parent], f"f{mark}"))
                own.append(mark)
            mark += 1
            parents = [tip, own[-1]] if tip else [own[-1]]
            parts.append(_write_commit(mark, f"Merge pull request #{number}", parents, f"m{mark}"))
            tip = mark
            marks.append((own, mark))
        parts.append(f"reset refs/heads/main\nfrom :{tip}\n\n".encode())
        table = self.folder / "marks"
        git.read_line("fast-import", "--quiet", f"--export-marks={table}", stdin=b"".join(parts))
        lines = (line.split() for line in table.read_text().splitlines())
        hashes = {int(name[1:]): commit for name, commit in lines}
        self.merges = [hashes[merge] for _, merge in marks]
        self.brought = [[hashes[each] for each in own] for own, _ in marks]

    def _plant(self, merges: int) -> list[Regression]:
        found = []
        for test in self.chance.sample(self.steady, 5):
            first = self.chance.randint(merges // 3, merges - 8)
            last = first + self.chance.randint(3, 6)
            culprit = self.chance.choice(self.brought[first])
            found.append(Regression(test, culprit, first, last, is_born=False))
        for test in self.tests[-8:-5]:
            first = self.chance.randint(merges // 3, merges - 8)
            culprit = self.chance.choice(self.brought[first])
            found.append(Regression(test, culprit, first, merges, is_born=True))
        return found

    def is_there(self, test: str, merge: int) -> bool:
        born = next((each.first for each in self.regressions if each.test == test), 0)
        is_born = any(each.test == test and each.is_born for each in self.regressions)
        return not is_born or merge >= born

    def fails_for_sure(self, test: str, merge: int) -> bool:
        return any(
            each.test == test and each.first <= merge <= each.last for each in self.regressions
        )

    def _run_pipelines(self) -> None:
        for merge, commit in enumerate(self.merges):
            at = START + merge * DAY / 2
            if merge > 0 and self.chance.random() < 0.15:
                continue  # a newer push cancelled it
            scope: Scope = "queue" if self.chance.random() < 0.2 else "default"
            is_broken = self.chance.random() < 0.08
            attempts = 2 if is_broken or self.chance.random() < 0.2 else 1
            for attempt in range(1, attempts + 1):
                for variant in VARIANTS:
                    is_red = is_broken and attempt == 1
                    self._upload(merge, commit, at, scope, attempt, variant, is_red=is_red)
            self.tested.add(merge)

    def draw_pull_request(self, merge: int) -> Upload:
        """What the pull request says that this merge brought, tested as it would be merged."""
        tests = [test for test in self.tests if self.is_there(test, merge)]
        run = CiRun(
            provider="github",
            project="shop/web",
            run=f"pr{merge}",
            job="unit",
            variant=(("os", VARIANTS[0]),),
            commit=self.merges[merge],
            head=self.brought[merge][-1],
            branch=f"topic{merge}",
            target="main",
            pr=str(merge),
            scope="pull-request",
            at=START + merge * DAY / 2 - 60,
        )
        return Upload(run, {test: self._try(test, merge) for test in tests})

    def _upload(
        self,
        merge: int,
        commit: str,
        at: float,
        scope: Scope,
        attempt: int,
        variant: str,
        *,
        is_red: bool,
    ) -> None:
        results = {}
        for test in self.tests:
            if self.is_there(test, merge):
                tries = "FF" if is_red else self._try(test, merge)
                results[test] = tries
                if not is_red:
                    self._note_flip(test, variant, merge, tries)
        for shard in (1, 2):
            run = CiRun(
                provider="github",
                project="shop/web",
                run=str(merge),
                attempt=attempt,
                job="unit",
                variant=(("os", variant),),
                shard=f"{shard}/2",
                commit=commit,
                branch="main",
                scope=scope,
                at=at + attempt * 600,
            )
            part = {test: tries for test, tries in results.items() if hash_test(test) == shard}
            self.uploads.append(Upload(run, part))

    def _try(self, test: str, merge: int) -> str:
        if self.fails_for_sure(test, merge):
            return "FF"
        rate = self.flaky.get(test, 0.0)
        if self.chance.random() >= rate:
            return "P"
        return "FF" if self.chance.random() < rate else "FP"

    def _note_flip(self, test: str, variant: str, merge: int, tries: str) -> None:
        kept = self._seen.setdefault((test, variant, merge), set())
        kept.update(tries)
        if kept >= {"P", "F"}:
            self.flips.setdefault((test, variant), set()).add(merge)


def hash_test(test: str) -> int:
    return int(test.rpartition("_")[2]) % 2 + 1


def _write_commit(mark: int, subject: str, parents: list[int], file: str) -> bytes:
    who = f"a <a@example.org> {1_700_000_000 + mark * 60} +0000"
    body = f"commit refs/heads/main\nmark :{mark}\nauthor {who}\ncommitter {who}\n"
    body += f"data {len(subject)}\n{subject}\n"
    known = [each for each in parents if each]
    if known:
        body += f"from :{known[0]}\n" + "".join(f"merge :{each}\n" for each in known[1:])
    return f"{body}M 100644 inline {file}\ndata {len(file)}\n{file}\n\n".encode()
