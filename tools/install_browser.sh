#!/usr/bin/env bash
# Chromium and the CJK fonts for the browser tests, from the system's packages when missing.
# An own browser is named with BROWSER_PATH=/path/to/chrome. Fails where none can be had.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/apt.sh

has_browser() {
    [ -n "${BROWSER_PATH:-}" ] && return 0
    local name
    for name in chromium chromium-browser google-chrome google-chrome-stable; do
        command -v "$name" >/dev/null && return 0
    done
    return 1
}

has_cjk_font() {
    command -v fc-list >/dev/null && [ -n "$(fc-list :lang=zh-cn family 2>/dev/null | head -n 1)" ]
}

if ! has_browser; then
    echo "Installing Chromium for the browser tests ..."
    apt_install chromium >&2 || apt_install chromium-browser >&2 || true
fi
if ! has_browser; then
    echo "The browser tests need Chromium or Google Chrome and none could be installed:" \
         "install one, or name it with BROWSER_PATH=/path/to/chrome." >&2
    exit 1
fi

if ! has_cjk_font; then
    echo "Installing Chinese fonts for the browser tests ..."
    apt_install fontconfig fonts-noto-cjk >&2 || true
fi
if ! has_cjk_font; then
    echo "The browser tests need a Chinese font and none could be installed:" \
         "install fonts-noto-cjk (or another one that covers zh-cn)." >&2
    exit 1
fi
