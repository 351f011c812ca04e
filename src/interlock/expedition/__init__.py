"""An epic at work: its checkpoints on disk, git on resume, and recovery.

Stands between the pure tables of `apps/epic` and the world: files, git, the session's channel.
"""
