"""The package's description: the README without what only a checkout can show."""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


def render_description(readme: str) -> str:
    """Plain text in place of relative links; no pictures and no diagrams."""
    text = re.sub(r"!\[[^\]]*\]\((?!https?:)[^)]*\)\n*", "", readme)
    text = re.sub(r"```mermaid\n.*?```\n*", "", text, flags=re.DOTALL)
    return re.sub(r"\[([^\]]*)\]\((?!https?:)[^)]*\)", r"\1", text)


class DescriptionHook(MetadataHookInterface):
    def update(self, metadata: dict[str, Any]) -> None:
        readme = Path(self.root, "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": render_description(readme),
        }
