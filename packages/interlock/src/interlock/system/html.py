"""Build self-contained pages: every text is escaped, style and script are inline.

An unknown name in a template is an error. Each page brings its own templates and shares the style
and script of this folder; a page may run nothing but that script.
"""

import base64
import hashlib

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from interlock.system import text, time


def load_templates(package: str, folder: str) -> Environment:
    """Return the templates in a package's folder, with filters for texts and times."""
    places = [PackageLoader(package, folder), PackageLoader("interlock", "system")]
    made = Environment(
        loader=ChoiceLoader(places),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        line=text.format_line,
        first_line=text.find_first_line,
        when=time.format_utc_time,
        day=time.format_day,
        lasted=time.format_elapsed,
        counted=text.plural,
        machine_time=time.format_rfc3339,
        link=text.safe_link,
    )
    return made


def read_source(made: Environment, name: str) -> str:
    """Return the text of a file beside the templates."""
    return made.loader.get_source(made, name)[0] if made.loader else ""


def build_content_policy(style: str, script: str) -> str:
    """Return a content policy under which only this page's style and script are applied."""
    return (
        f"default-src 'none'; script-src 'sha256-{_digest(script)}'; "
        f"style-src 'sha256-{_digest(style)}'; base-uri 'none'; form-action 'none'"
    )


def _digest(part: str) -> str:
    return base64.b64encode(hashlib.sha256(part.encode()).digest()).decode()
