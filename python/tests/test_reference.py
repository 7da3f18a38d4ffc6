"""The reference that `make docs` puts into the book."""

from __future__ import annotations

import importlib
import inspect
import re
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "python-reference"


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reference")
    subprocess.run([SCRIPT, folder], check=True)
    return folder


@pytest.mark.parametrize("name", ["lasthop", "lasthop.plot", "lasthop.gym", "lasthop.dask"])
def test_every_public_name_is_in_the_reference_with_its_arguments(pages: Path, name: str) -> None:
    module = importlib.import_module(name)
    page = (pages / f"python-reference-{name.rpartition('.')[2]}.md").read_text()
    parts = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", page, flags=re.MULTILINE | re.DOTALL))
    assert set(parts) == {public for public in module.__all__ if public != "__version__"}
    for public, text in parts.items():
        thing = getattr(module, public)
        assert len(text.split()) > 5, f"{public} has no docs"
        if inspect.isfunction(thing):
            assert f"{public}(" in text
            assert "*Arguments*" in text or public == "log_goodput", public
        if "*Arguments*" in text:
            given = {key for key in inspect.signature(thing).parameters if key != "self"}
            listed = text.partition("*Arguments*")[2].partition("\n\n*")[0]
            assert given == set(re.findall(r"^- `(\w+)`: ", listed, flags=re.MULTILINE)), public
