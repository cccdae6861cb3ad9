"""`python -m cepheid.manager.node_process`: the process of a node, quick to start."""

from __future__ import annotations

import sys

from cepheid.manager.parent_death import die_with_parent
from cepheid.manager.worker_main import answer_frames
from cepheid.model.lean_process import leave_out_libraries


def main() -> None:
    """Run a node until the manager, whose process is the argument, closes its input."""
    die_with_parent(int(sys.argv[1]))
    leave_out_libraries()
    # Imported now, so that what is left out stays out.
    from cepheid.kernels.quick_start import start_quickly  # noqa: PLC0415
    from cepheid.manager.node import Node  # noqa: PLC0415

    start_quickly()
    answer_frames(Node().answer)


if __name__ == "__main__":
    main()
