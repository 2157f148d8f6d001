"""A simulated machine with the Debian package. The commands of the handbook's pages run on it. A folder represents its disk.

`machines/PAGE/` has a script for each part of a page that begins on a fresh machine: `start.sh`, or the anchor of a heading. This
script creates what the reader already has at that point. The programs in `machines/bin` stand for the machine's own: `systemctl` starts the
units of `machines/units`, `journalctl` shows their logs, `sudo` runs the command. A script that begins with `# disk: 96m` gets a
disk of that size for /var/lib/synheart-auth, one with `# clock` a clock of its own, in the file `clock`, and before one with
`# service`, `machines/service.sh` is run.
"""
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
MACHINES = HERE / "machines"
DOCC = ROOT / "Service/Sources/AuthServer/AuthServer.docc"
FAKETIME = f"/usr/lib/{platform.machine()}-linux-gnu/faketime/libfaketimeMT.so.1"
# Matches the first folders of an absolute path on the simulated machine, wherever a text has such a path.
PATHS = re.compile(r"(?<![\w./…-])/(etc/(?:synheart-auth|credstore|bash_completion\.d)|var|media|backup)(?=/|\b)")
FOLDERS = [
    "etc/synheart-auth", "etc/credstore", "etc/bash_completion.d", "backup", "var/lib/synheart-auth", "var/lib/redis", "var/backups",
    "media/usb", "home", "log", "run"]


def parts(name, text):
    """The script and the text of each part of a page."""
    # Blanks the code, so that a shell comment is not taken as a heading.
    prose = re.sub(r"^```.*?^```", lambda found: re.sub("[^\n]", " ", found.group()), text, flags=re.S | re.M)
    headings = list(re.finditer(r"^#+ +(.+)$", prose, re.M))
    starts = {"start": 0} | {re.sub(r"[^\w\- ]", "", found.group(1).lower()).replace(" ", "-"): found.start() for found in headings}
    scripts = sorted(MACHINES.joinpath(name).glob("*.sh"), key=lambda script: starts.get(script.stem, -1))
    for script in scripts:
        if script.stem not in starts:
            sys.exit(f"{script}: the page {name} has no such heading")
    ends = [starts[script.stem] for script in scripts[1:]] + [len(text)]
    return [(script, text[starts[script.stem]:end]) for script, end in zip(scripts, ends)]


class Machine:
    """One simulated machine. Its folder must be empty at first."""

    def __init__(self, folder, binary, script, ports):
        self.folder, self.ports, self.script = pathlib.Path(folder), ports, script.read_text()
        if self.script.startswith("# service\n"):
            self.script = (MACHINES / "service.sh").read_text() + self.script
        for part in FOLDERS:
            (self.folder / part).mkdir(parents=True, exist_ok=True)
        # Lets PostgreSQL enter the folder: it runs as another user.
        self.folder.chmod(0o711)
        settings = (ROOT / "Service/Packaging/synheart-auth.yaml").read_text()
        (self.folder / "etc/synheart-auth/synheart-auth.yaml").write_text(self.placed(settings))
        self.environment = {
            "MACHINE": folder, "MACHINE_BINARY": str(binary), "MACHINE_FAKETIME": FAKETIME, "MACHINE_REDIS": ports["6379"],
            "CLONE": str(ROOT), "HOME": f"{folder}/home", "PATH": f"{MACHINES / 'bin'}:{os.environ['PATH']}",
            "SYNHEART_AUTH_PORT": ports["8080"], "SYNHEART_AUTH_OPERATIONS_PORT": ports["9464"], "TZ": "UTC", "LC_ALL": "C.UTF-8"}

    @property
    def command(self):
        """The command that starts a shell in the machine; None if this system cannot mount a small disk."""
        shell = ["bash", "--noprofile", "--norc"]
        size = re.match(r"# disk: (\w+)$", self.script, re.M)
        if not size:
            return shell
        mount = f'mount -t tmpfs -o size={size.group(1)} tmpfs "$0" && exec "$@"'
        user = [] if os.geteuid() == 0 else ["--map-root-user"]
        disk = ["unshare", *user, "--mount", "sh", "-c", mount, str(self.folder / "var/lib/synheart-auth")]
        return [*disk, *shell] if subprocess.run([*disk, "true"], capture_output=True).returncode == 0 else None

    @property
    def prologue(self):
        clock = f"echo +0 > {self.folder}/clock\n" if re.match("# clock$", self.script, re.M) else ""
        return f"cd {self.folder}/home\n{clock}{self.placed(self.script)}"

    def placed(self, text):
        """The text with this machine's paths and ports."""
        for host, port in [("auth", "8080"), ("hooks", "8000")]:
            text = text.replace(f"https://{host}.example.com", f"http://127.0.0.1:{self.ports[port]}")
        for port, free in self.ports.items():
            text = text.replace(f"127.0.0.1:{port}", f"127.0.0.1:{free}")
        return PATHS.sub(lambda found: f"{self.folder}{found.group()}", text)

    def end(self):
        """Stops PostgreSQL if a script started it, and deletes the machine's folder."""
        postgresql = self.folder / "postgresql"
        if postgresql.exists():
            subprocess.run([ROOT / "scripts/temporary-postgresql", "--stop", postgresql], check=False)
        shutil.rmtree(self.folder, ignore_errors=True)
