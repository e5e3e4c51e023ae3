"""Is the mosaic in BURSTLAB_MOUNT right? Tells it in one line; exit status 1 if it is not.

One made of synthetic tiles (a truth.json lies beside them) is compared with the true sky as well.
"""

import os
import sys
from pathlib import Path

import verdict


def main() -> int:
    mount, data = Path(os.environ["BURSTLAB_MOUNT"]), Path(os.environ["BURSTLAB_DATA"])
    try:
        found = [verdict.judge(mount)]
        if (data / "truth.json").exists():
            import true_sky

            found.append(true_sky.judge(mount, data / "truth.json"))
    except (verdict.WrongMosaic, OSError) as error:
        print(f"mosaic wrong: {error}")
        return 1
    print(f"mosaic ok: {', '.join(found)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
