#!/bin/sh
# Makes the zips of this folder: one skill, by each tool's own ways. They are kept, so that no test needs the tools.
# Made with Info-ZIP 3.0, Python 3.11 and OpenJDK 17.
set -eu
cd "$(dirname "$0")"
rm -f ./*.zip
here=$(pwd)
for skill in invoice-check trip-notes; do
  (cd ../skills && zip -q -r -X "$here/info-zip-$skill.zip" "$skill")
  (cd "../skills/$skill" && zip -q -0 -r -D "$here/info-zip-stored-$skill.zip" .)
  (cd "../skills" && zip -q -r - "$skill" | cat >"$here/info-zip-piped-$skill.zip")
  (cd ../skills && jar --create --no-manifest --file "$here/jar-$skill.zip" "$skill")
  (cd "../skills/$skill" && python3 -m zipfile -c "$here/python-$skill.zip" *)
  python3 - "$skill" "$here/python-odd-$skill.zip" <<'PYTHON'
import os, sys, zipfile
skill, to = sys.argv[1:]
with zipfile.ZipFile(to, "w") as z:  # backwards, every second one stored, each of another time, scripts to be run
    found = sorted(os.path.join(d, f) for d, _, files in os.walk("../skills/" + skill) for f in files)
    for i, name in enumerate(reversed(found)):
        info = zipfile.ZipInfo(os.path.relpath(name, "../skills"), (1990 + i, 1 + i, 2 + i, 3, 4, 6))
        info.compress_type = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)[i % 2]
        info.external_attr = 0o100755 << 16
        with open(name, "rb") as f:
            z.writestr(info, f.read(), compresslevel=9)
PYTHON
done
