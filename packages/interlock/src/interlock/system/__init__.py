"""The floor: files, locks, git, strict JSON, processes, text, time, HTTP. Nothing of Interlock."""
