"""The reference page of the Python names, from signatures and docstrings as they are written."""

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import interlock
from interlock import testing
from interlock.api import extend

_HEAD = """\
# Python reference

Made by `make docs` from the code itself. What is listed here keeps to semantic versioning.
How-tos: [embed Interlock](../python.md), [extend it](../extend.md).
"""
_SECTIONS: tuple[tuple[ModuleType, str], ...] = (
    (interlock, "What programs use. Each name is loaded when it is first used."),
    (testing, "For tests of circuits, applications and carriers."),
    (extend, "For packages that bring applications and agents."),
)


def render_python_page() -> str:
    parts = [_HEAD]
    for module, about in _SECTIONS:
        parts.append(f"## {module.__name__}\n\n{about}\n")
        parts += [_render(name, thing) for name, thing in list_names(module).items()]
    return "\n".join(parts)


def list_names(module: ModuleType) -> dict[str, Any]:
    """The names of a module that no module before it has."""
    names: list[str] = module.__all__
    known = () if module is interlock else interlock.__all__
    return {name: getattr(module, name) for name in names if name not in ("testing", *known)}


def describe_fields(kind: type) -> dict[str, tuple[str, str]]:
    """The type and the text of each field of a record, by its name, as they are written."""
    node = _node(kind)
    return _describe_fields(node) if isinstance(node, ast.ClassDef) else {}


def _describe_fields(node: ast.ClassDef) -> dict[str, tuple[str, str]]:
    return {
        _name(each): (
            ast.unparse(each.annotation) if isinstance(each, ast.AnnAssign) else "",
            " ".join(_doc_after(node, each).split()),
        )
        for each in _fields(node)
    }


def list_signatures(module: ModuleType) -> Iterator[str]:
    """A line for each name and each public member, as a golden file keeps them."""
    for name, thing in list_names(module).items():
        node = _node(thing)
        if isinstance(node, ast.ClassDef):
            yield f"{name}({', '.join(ast.unparse(base) for base in node.bases)})"
            for each in _fields(node):
                yield f"{name}.{ast.unparse(each).splitlines()[0]}"
            for method in _methods(node):
                call = "()" if _is_property(method) else ""
                yield f"{name}.{_signature(method).replace(call, '', 1)}"
        elif node is not None:
            yield _signature(node)
        else:
            yield f"{name} = {_plain(thing)}"


def _render(name: str, thing: Any) -> str:
    node = _node(thing)
    lines = [f"### {name}", ""]
    if isinstance(node, ast.ClassDef):
        lines += [_doc(node), "", *_render_class(name, node)]
    elif node is not None:
        lines += [f"`{_signature(node)}`", "", _doc(node)]
    else:
        lines += [f"`{_plain(thing)}`"]
    return "\n".join(lines).rstrip() + "\n"


def _render_class(name: str, node: ast.ClassDef) -> Iterator[str]:
    """Yield a line for each member with a text, and one for all that need none."""
    members = [
        (f"{field}: {kind}" if kind else field, about)
        for field, (kind, about) in _describe_fields(node).items()
    ]
    for method in _methods(node):
        title = name if method.name == "__init__" else f".{method.name}"
        signature = _signature(method).replace(method.name, title, 1).removesuffix(" -> None")
        about = " ".join(_doc(method).split())
        members.append((title if _is_property(method) else signature, about))
    plain = ", ".join(f"`{member}`" for member, about in members if not about)
    if plain:
        yield f"- {plain}"
    yield from (f"- `{member}`: {about}" for member, about in members if about)


def _node(thing: Any) -> ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef | None:
    """How a class or function is written; None for a type that only has a second name."""
    if not (inspect.isclass(thing) or inspect.isfunction(thing)):
        return None
    found = ast.parse(textwrap.dedent(inspect.getsource(thing))).body[0]
    known = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    return found if isinstance(found, known) else None


def _fields(node: ast.ClassDef) -> Iterator[ast.AnnAssign | ast.Assign]:
    for each in node.body:
        if isinstance(each, ast.AnnAssign | ast.Assign) and not _name(each).startswith("_"):
            yield each


def _name(field: ast.AnnAssign | ast.Assign) -> str:
    target = field.target if isinstance(field, ast.AnnAssign) else field.targets[0]
    return ast.unparse(target)


def _methods(node: ast.ClassDef) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for each in node.body:
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) and (
            each.name == "__init__" or not each.name.startswith("_")
        ):
            yield each


def _is_property(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(ast.unparse(each) == "property" for each in node.decorator_list)


def _signature(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """As it is written, without `self`, and types that are quoted without their quotes."""
    given = re.sub(r"^(self|cls)(, )?", "", ast.unparse(node.args))
    result = f" -> {ast.unparse(node.returns)}" if node.returns is not None else ""
    word = "async " if isinstance(node, ast.AsyncFunctionDef) else ""
    return word + re.sub(r"(: |-> |\[)'([^']+)'", r"\1\2", f"{node.name}({given}){result}")


def _doc(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    return ast.get_docstring(node) or ""


def _doc_after(node: ast.ClassDef, field: ast.stmt) -> str:
    """The text that stands behind a field."""
    place = node.body.index(field) + 1
    found = node.body[place] if place < len(node.body) else None
    if isinstance(found, ast.Expr) and isinstance(found.value, ast.Constant):
        return str(found.value.value)
    return ""


def escape_cell(text: str) -> str:
    return text.replace("|", "\\|")


def _plain(thing: Any) -> str:
    return re.sub(r"(?:[a-z_]+\.)+([A-Za-z_]+)", r"\1", str(thing))
