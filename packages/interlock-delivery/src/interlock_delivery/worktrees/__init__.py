"""The clone, the tree and branch of each task, and the branch they are merged into."""
