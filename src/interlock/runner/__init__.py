"""The loop: prompts go out, answers come in, the engine decides, the journal remembers."""
