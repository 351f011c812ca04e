"""Pages that need nothing else: templates with every text escaped, style and script put inline.

An unknown name in a template is an error. The style and the script that all pages share lie here;
each page brings its own templates. A page may run nothing but that script.
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
    """A file beside the templates, as it is."""
    return made.loader.get_source(made, name)[0] if made.loader else ""


def build_content_policy(style: str, script: str) -> str:
    """Nothing is loaded, sent or run but the style and the script of this page."""
    return (
        f"default-src 'none'; script-src 'sha256-{_digest(script)}'; "
        f"style-src 'sha256-{_digest(style)}'; base-uri 'none'; form-action 'none'"
    )


def _digest(part: str) -> str:
    return base64.b64encode(hashlib.sha256(part.encode()).digest()).decode()
