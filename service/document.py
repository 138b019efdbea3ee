"""`python -m service.document`: the OpenAPI document of this tree on standard output, for those who read or generate
without a service at hand. It is that of a service with keys, which says more.
"""

import json
from pathlib import Path

from ledger.settings import Settings
from service.app import create_app


def document() -> str:
    """Sorted, so that a change in the tree is the same change in the file."""
    app = create_app(Settings(admin_key_file=Path("admin-key")))
    return json.dumps(app.openapi(), indent=1, sort_keys=True) + "\n"


if __name__ == "__main__":
    print(document(), end="")
