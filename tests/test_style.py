"""What the house style asks for and a machine can see: names, parameters, comments, kernels.

Ruff, mypy and import-linter check the rest.
"""

from __future__ import annotations

import ast
import doctest
import inspect
import io
import re
import tokenize
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import headgate

ROOT = Path(__file__).parents[1]
CHECKED = ("src/headgate", "benchmarks", "examples")
BANNED_NAMES = {"found", "told", "asked", "alone", "beside", "several"}
MAX_PARAMETERS = 8
LONG_FUNCTION = 40  # lines, from which on a function has comments at its steps
SHORT_KERNEL = 8  # lines, up to which the docstring of a kernel is enough
PYTHON_BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)

Function = ast.FunctionDef | ast.AsyncFunctionDef
Finding = tuple[int, str]


def is_kernels(path: Path) -> bool:
    """Return whether a file may hold Numba kernels."""
    return path.stem == "kernels" or "kernels" in path.parts


def bound_names(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Yield every name that a module binds, with its line."""
    for node in ast.walk(tree):
        if isinstance(node, Function | ast.ClassDef):
            yield node.name, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr, node.lineno


def comment_lines(text: str) -> set[int]:
    """Return the lines with a comment that is meant for people."""
    return {
        token.start[0]
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.COMMENT and not re.match(r"#\s*(type:|noqa|fmt:)", token.string)
    }


def name_findings(path: Path, tree: ast.Module) -> Iterator[Finding]:
    """Yield the names that say nothing, also behind the `test_` of a test."""
    for name, line in [(path.stem, 1), *bound_names(tree)]:
        word = name.strip("_").lower().removeprefix("test_").split("_")[0]
        if word in BANNED_NAMES:
            yield line, f"`{name}` does not say what it is"


def findings(path: Path, text: str) -> Iterator[Finding]:
    """Yield what the style forbids in a file, with the line."""
    tree, comments = ast.parse(text), comment_lines(text)
    yield from name_findings(path, tree)
    has_kernels = re.search(r"^\s*@(kernel|inlined_kernel|njit)\b", text, re.MULTILINE)
    if has_kernels and not is_kernels(path) and "jit" not in path.parts:
        yield 1, "a kernel outside a module or package called `kernels`"
    for node in ast.walk(tree):
        if isinstance(node, Function):
            yield from function_findings(node, path, comments)
    for node in tree.body:
        may_share = path.parent.name == "cli" or is_kernels(path)  # a file per command or kernel
        if isinstance(node, Function) and node.name == path.stem and not may_share:
            yield node.lineno, f"`{node.name}` has the name of its module"


def function_findings(node: Function, path: Path, comments: set[int]) -> Iterator[Finding]:
    """Yield what the style forbids in a function."""
    arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    count = sum(argument.arg not in ("self", "cls") for argument in arguments)
    is_command = path.parent.name == "cli" or path.name == "__main__.py"  # options of a command
    if count > MAX_PARAMETERS and not is_kernels(path) and not is_command:
        yield node.lineno, f"`{node.name}` has {count} parameters; at most {MAX_PARAMETERS}"
    length = (node.end_lineno or node.lineno) - node.lineno + 1
    lines = range(node.lineno, node.lineno + length)
    is_kernel = any("kernel" in ast.unparse(decorator) for decorator in node.decorator_list)
    if not comments.isdisjoint(lines):
        return
    if length > (SHORT_KERNEL if is_kernel else LONG_FUNCTION):
        yield node.lineno, f"`{node.name}` has {length} lines and no comment"
    elif is_kernel and ast.get_docstring(node) is None:
        yield node.lineno, f"kernel `{node.name}` has neither a docstring nor a comment"


def page_findings(path: Path, text: str) -> Iterator[Finding]:
    """Yield the names that say nothing in the Python of a page, a prompt or a program."""
    for block in PYTHON_BLOCK.finditer(text):
        first_line = text.count("\n", 0, block.start(1)) + 1
        prompts = doctest.DocTestParser().get_examples(block[1])
        pieces = [(piece.lineno, piece.source) for piece in prompts] or [(0, block[1])]
        for offset, source in pieces:
            for line, message in name_findings(path, ast.parse(source)):
                yield first_line + offset + line - 1, message


def list_findings(
    folder: str, check: Callable[[Path, str], Iterator[Finding]], pattern: str = "*.py"
) -> list[str]:
    """Return what a check finds in the files of a folder, each with its file and line."""
    return [
        f"{path.relative_to(ROOT)}:{line} {message}"
        for path in sorted((ROOT / folder).rglob(pattern))
        for line, message in sorted(check(path.relative_to(ROOT), path.read_text("utf-8")))
    ]


@pytest.mark.parametrize("folder", CHECKED)
def test_house_style(folder: str) -> None:
    """Every finding is listed with its file and line."""
    listed = list_findings(folder, findings)
    assert not listed, "\n".join(listed)


def test_names_of_tests() -> None:
    """Names in tests say what they are, too; their other rules are Ruff's."""
    listed = list_findings("tests", lambda path, text: name_findings(path, ast.parse(text)))
    assert not listed, "\n".join(listed)


def test_names_on_pages() -> None:
    """Readers copy the code of a page, names and all."""
    listed = list_findings("docs", page_findings, "*.md")
    assert not listed, "\n".join(listed)


@pytest.mark.parametrize(
    "path, text, said",
    [
        ("a.py", "found = 1", "does not say what it is"),
        ("several.py", "", "does not say what it is"),
        ("test_a.py", "def test_alone(): pass", "does not say what it is"),
        ("a.py", "@kernel\ndef f(): pass", "outside a module"),
        ("a.py", "def f(a, b, c, d, e, g, h, i, j): pass", "9 parameters"),
        ("a.py", "def f():\n" + "    x = 1\n" * 40, "no comment"),
        ("kernels.py", "@kernel\ndef f():\n" + "    x = 1\n" * 9, "no comment"),
        ("kernels.py", "@kernel\ndef f(): pass", "neither a docstring nor a comment"),
        ("a.py", "def a(): pass", "name of its module"),
    ],
)
def test_the_style_can_be_broken(path: str, text: str, said: str) -> None:
    """The test above is not vacuous."""
    assert any(said in message for _, message in findings(Path(path), text))


@pytest.mark.parametrize("code", ["x = 1\nfound = 2\n", ">>> x = 1\n>>> found = 2\n"])
def test_a_name_on_a_page_is_noticed(code: str) -> None:
    """Both kinds of example are read, and the line is that of the page."""
    page = f"# Title\n```python\n{code}```\n"
    assert [line for line, _ in page_findings(Path("page.md"), page)] == [4]


def public_functions() -> Iterator[tuple[str, Callable[..., object]]]:
    """Yield every public function and every public method of a public class, with its full name."""
    for module in (headgate, headgate.sharing, headgate.spark):
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.isfunction(value):
                yield f"{module.__name__}.{name}", value
    for name, public_class in public_classes():
        for member, function in vars(public_class).items():
            if isinstance(function, classmethod | staticmethod):
                function = function.__func__  # noqa: PLW2901
            if inspect.isfunction(function) and not member.startswith("_"):
                yield f"{name}.{member}", function


def public_classes() -> Iterator[tuple[str, type]]:
    """Yield every public class that is not an error or a warning, with its full name."""
    for module in (headgate, headgate.sharing, headgate.spark):
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.isclass(value) and not issubclass(value, BaseException):
                yield f"{module.__name__}.{name}", value


def missing_sections(name: str, function: Callable[..., object]) -> Iterator[str]:
    """Yield what the docstring of something public lacks."""
    text = inspect.getdoc(function) or ""
    signature = inspect.signature(function)
    parameters = [p for p in signature.parameters if p not in ("self", "cls")]
    if not text:
        yield f"{name} has no docstring"
    if parameters and "Parameters\n----" not in text:
        yield f"{name} has no section Parameters"
    is_method = name.count(".") > 1 and name.split(".")[-2][0].isupper()
    # what a method without parameters returns is said in its first line
    returns = signature.return_annotation not in (None, "None") and (parameters or not is_method)
    if returns and not re.search(r"^(Returns|Yields)\n---", text, re.MULTILINE):
        yield f"{name} has no section Returns"
    # the example of a class shows its methods
    if not is_method and "Examples\n----" not in text:
        yield f"{name} has no section Examples"


def test_everything_public_is_documented() -> None:
    """Functions and methods have parameters and result; functions and classes an example."""
    missing = [m for name, f in public_functions() for m in missing_sections(name, f)]
    missing += [
        f"{name} has no section Examples"
        for name, public_class in public_classes()
        if "Examples\n----" not in (inspect.getdoc(public_class) or "")
    ]
    assert not missing, "\n".join(missing)
