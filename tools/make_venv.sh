#!/usr/bin/env bash
# make_venv.sh FOLDER: a virtual environment with the first Python >= 3.11 that is found.
# PYTHON names another interpreter to try first.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/apt.sh
folder=$1

find_python() {
    local name
    for name in "${PYTHON:-python3}" python3 python3.14 python3.13 python3.12 python3.11; do
        if "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$name"
            return
        fi
    done
    return 1
}

if ! python=$(find_python); then
    echo "Python 3.11 or newer is needed and none was found: install it," \
         "or name it with 'make PYTHON=/path/to/python3.12 ...'." >&2
    exit 1
fi

# Debian and Ubuntu ship Python without the part that makes environments.
if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    if ! apt_install "python$version-venv" >&2; then
        echo "Python cannot make virtual environments here: install the package" \
             "python$version-venv (apt-get install python$version-venv) and try again." >&2
        exit 1
    fi
fi

"$python" -m venv --clear "$folder"
echo "Made $folder with $("$python" --version)."
