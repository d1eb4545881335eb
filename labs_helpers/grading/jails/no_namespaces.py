"""Advice for machines whose kernel creates no namespaces for bubblewrap."""

from __future__ import annotations

from pathlib import Path

# bwrap's words where that is the cause. On Ubuntu 24.04 a user namespace is made, but without rights in it: what fails
# then is the loopback device of --unshare-net (Ubuntu's bubblewrap 0.9.0), or the map of users before it.
_SAID = (
    "Failed RTM_NEWADDR", "setting up uid map", "No permissions to create", "Creating new namespace failed",
    "Operation not permitted", "Permission denied",
)  # fmt: skip
PROFILE = """\
abi <abi/4.0>,
include <tunables/global>

profile bwrap /usr/bin/bwrap flags=(unconfined) {
  userns,
}
"""
APPARMOR = f"""
Here AppArmor lets programs make user namespaces only if their profile says so (as on Ubuntu 23.10 and newer). One of:
  - the profile that Ubuntu has for bubblewrap; in 24.04 it is not switched on (as root):
      apt install apparmor-profiles
      cp /usr/share/apparmor/extra-profiles/bwrap-userns-restrict /etc/apparmor.d/
      apparmor_parser -r /etc/apparmor.d/bwrap-userns-restrict
  - where there is none, these lines as /etc/apparmor.d/bwrap, then apparmor_parser -r /etc/apparmor.d/bwrap (as root):
{"".join(f"      {line}".rstrip() + chr(10) for line in PROFILE.splitlines())}\
  - for all programs, until the next start: sysctl kernel.apparmor_restrict_unprivileged_userns=0 (as root)
"""
SWITCHED_OFF = """
Here the kernel makes no user namespaces for users who are not root. As root, until the next start:
  - sysctl """
ELSEWHERE = """\
  - Apptainer, where your administrator has installed it: --image course.sif
  - grade as root: answers still run as an unprivileged user
  - --unsafe grades without a jail: only if you would run these answers as yourself"""
IN_A_CONTAINER = """
Inside a container its own rules forbid what bubblewrap does. Grade outside of it, or:
"""


# Settings below /proc/sys, the value at which the kernel refuses, and what to do about it.
CAUSES = (
    ("kernel/apparmor_restrict_unprivileged_userns", "1", APPARMOR),
    ("kernel/unprivileged_userns_clone", "0", f"{SWITCHED_OFF}kernel.unprivileged_userns_clone=1\n"),
    ("user/max_user_namespaces", "0", f"{SWITCHED_OFF}user.max_user_namespaces=15000\n"),
)


def advice(said: str, root: Path = Path("/proc/sys")) -> str:
    """Return lines of advice for this message of bwrap; '' if it failed for another reason."""
    if not any(words in said for words in _SAID):
        return ""
    for setting, value, told in CAUSES:
        if (root / setting).exists() and (root / setting).read_text().strip() == value:
            return told + ELSEWHERE
    return IN_A_CONTAINER + ELSEWHERE
