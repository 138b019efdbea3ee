import os
import subprocess
import sys
from pathlib import Path

DRAW = """
import sys
from pathlib import Path
import numpy as np
from engine import plots
assert "matplotlib" not in sys.modules
plots.save_strip(Path(sys.argv[1]), {0: np.zeros((6, 8, 8, 1), np.uint8)}, [None], 0, "title")
assert "matplotlib.pyplot" not in sys.modules
"""


def test_drawing_leaves_nothing_in_the_users_home(tmp_path):
    home, out = tmp_path / "home", tmp_path / "out"
    home.mkdir()
    out.mkdir()
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "MPL"))}
    environment |= {"HOME": str(home), "PYTHONPATH": str(Path.cwd())}
    subprocess.run([sys.executable, "-c", DRAW, str(out)], env=environment, check=True)
    assert list(home.rglob("*")) == []
    assert sorted(path.name for path in out.iterdir()) == ["strip.json", "strip.png"]
