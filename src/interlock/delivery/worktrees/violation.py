"""What an agent did in its tree that it may not do, as data.

Refuses to know what follows from it.
"""

import msgspec


class Violation(msgspec.Struct, frozen=True, order=True):
    """What it was is put right already; the sentence tells the agent what to do instead.

    Kinds of git: tree-replaced, git-file, head-moved, history-rewritten, line-moved, ref-made,
    ref-moved, ref-deleted, stash. Kinds of files, which are left out of the snapshot: too-large,
    symlink-outside, nested-repository, submodule-moved, special-file, unreadable.
    """

    kind: str
    sentence: str
