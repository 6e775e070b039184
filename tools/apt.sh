# Sourced by the other scripts: apt_install PACKAGE... installs through apt-get where there is one.

apt_install() {
    command -v apt-get >/dev/null || return 1
    local as_root=()
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null || return 1
        as_root=(sudo)
    fi
    if [ -z "${apt_lists_updated:-}" ]; then
        "${as_root[@]}" apt-get update -qq || return 1
        apt_lists_updated=yes
    fi
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends "$@"
}
