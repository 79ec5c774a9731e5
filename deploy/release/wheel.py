"""Packs the program as a Python wheel, so that `pip install` and `uvx` install it without a compiler.

A wheel is a zip archive whose `.data/scripts` folder is installed as programs. It contains the same program as the other
packages; maturin would build the program again, with other features.
"""

import argparse
import base64
import hashlib
import os
import pathlib
import time
import zipfile

METADATA = """\
Metadata-Version: 2.3
Name: faultline
Version: {version}
Summary: Error observability for MCP and agent tool servers
License-Expression: Apache-2.0
Requires-Python: >=3.8
Classifier: Environment :: Console
Classifier: Operating System :: POSIX :: Linux
Classifier: Topic :: System :: Monitoring
Description-Content-Type: text/markdown

{readme}"""

WHEEL = """\
Wheel-Version: 1.0
Generator: faultline deploy/release/wheel.py
Root-Is-Purelib: false
Tag: {tag}
"""


class Wheel:
    """An archive that remembers what is in it, for its RECORD."""

    def __init__(self, path: pathlib.Path, built: time.struct_time):
        self.archive = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=6)
        self.built = tuple(built)[:6]
        self.record = []

    def add(self, name: str, content: bytes, mode: int = 0o644) -> None:
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        self.record.append(f"{name},sha256={digest},{len(content)}")
        self._write(name, content, mode)

    def close(self, record: str) -> None:
        self._write(record, "\n".join([*self.record, f"{record},,", ""]).encode(), 0o644)
        self.archive.close()

    def _write(self, name: str, content: bytes, mode: int) -> None:
        entry = zipfile.ZipInfo(name, self.built)
        entry.external_attr = (0o100000 | mode) << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        self.archive.writestr(entry, content)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    for name in ["program", "version", "glibc", "machine", "output"]:
        arguments.add_argument(f"--{name}", required=True)
    given = arguments.parse_args()
    tag = f"py3-none-manylinux_{given.glibc.replace('.', '_')}_{given.machine}"
    built = time.gmtime(int(os.environ.get("SOURCE_DATE_EPOCH", time.time())))
    name = f"faultline-{given.version}"
    info = f"{name}.dist-info"
    wheel = Wheel(pathlib.Path(given.output) / f"{name}-{tag}.whl", built)
    wheel.add(f"{name}.data/scripts/faultline", pathlib.Path(given.program).read_bytes(), 0o755)
    readme = pathlib.Path("README.md").read_text(encoding="utf-8")
    wheel.add(f"{info}/METADATA", METADATA.format(version=given.version, readme=readme).encode())
    wheel.add(f"{info}/WHEEL", WHEEL.format(tag=tag).encode())
    wheel.add(f"{info}/licenses/LICENSE", pathlib.Path("LICENSE").read_bytes())
    wheel.close(f"{info}/RECORD")


if __name__ == "__main__":
    main()
