"""A fresh Debian in a folder, with or without a systemd that boots in it."""
import contextlib
import hashlib
import os
import re
import shutil
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / ".build/package"
# Packages of a typical server; the checks need curl and man.
PACKAGES = ["systemd", "systemd-sysv", "dbus", "ca-certificates", "curl", "man-db", "sudo"]
# Packages that `apt install` can find without a network: dependencies of the package and of a debug build, and those that the
# pages install.
WITHIN_REACH = ["libpq5", "libsqlite3-0", "libcurl4", "zlib1g", "nginx", "python3-flask"]


def say(text):
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


def require(condition, text):
    if not condition:
        raise AssertionError(text)


def run(*command, check=True, **options):
    result = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if check:
        require(result.returncode == 0, f"{' '.join(map(str, command))}: exit code {result.returncode}\n{result.stdout}")
    return result.stdout


def wait(what, seconds, ask):
    """Returns the first true result of `ask`."""
    end = time.monotonic() + seconds
    while not (answer := ask()):
        require(time.monotonic() < end, f"{what}: not within {seconds} s")
        time.sleep(0.1)
    return answer


def give_back(path):
    """Gives files that root made in the clone to the user who called sudo, who could not remove them otherwise."""
    if "SUDO_UID" in os.environ:
        os.chown(path, int(os.environ["SUDO_UID"]), int(os.environ["SUDO_GID"]))


def become_root(script, arguments):
    """Starts the script again with sudo, if this is not root."""
    if os.geteuid() != 0:
        # sudo has its own PATH. Append the folder of `swift`, because the packaging finds the license of Swift's libraries
        # through that command.
        swift = shutil.which("swift")
        path = ":".join(["/usr/sbin:/usr/bin:/sbin:/bin", *([os.path.dirname(swift)] if swift else [])])
        os.execvp("sudo", ["sudo", "env", f"PATH={path}", script, *arguments])


def settle():
    """Sets the environment of a check."""
    # The umask lets the service's user read files that the check creates in the Debian system. The locale keeps the
    # output of tools in English, which the check can read.
    os.umask(0o022)
    os.environ["LC_ALL"] = "C.UTF-8"
    # The service refuses unknown variables with its prefix.
    for name in [name for name in os.environ if name.startswith("SYNHEART_AUTH_")]:
        del os.environ[name]


def packed(given, work):
    """The package of a built binary, or the package that is given."""
    if given.suffix == ".deb":
        return given
    say("pack")
    said = run(ROOT / "Service/Packaging/deb", given, work, env={**os.environ, "COMPRESSION": "-Zgzip -z1"})
    return Path(said.splitlines()[-1])


def archive():
    """A fresh Debian as an archive. It is made once."""
    suite = re.search(r"VERSION_CODENAME=(\w+)", Path("/etc/os-release").read_text()).group(1)
    download = f'chroot "$1" apt-get install --quiet --quiet --yes --download-only {" ".join(WITHIN_REACH)}'
    command = ["mmdebstrap", "--quiet", "--variant=minbase", f"--include={','.join(PACKAGES)}", "--skip=cleanup/apt",
               f"--customize-hook={download}", "--format=tar", suite]
    path = BUILD / f"{suite}-{hashlib.sha256(' '.join(command).encode()).hexdigest()[:8]}.tar"
    if not path.exists():
        say("mmdebstrap")
        for folder in (BUILD.parent, BUILD):
            if not folder.exists():
                folder.mkdir()
                give_back(folder)
        run(*command, f"{path}.new")
        give_back(f"{path}.new")
        os.rename(f"{path}.new", path)
    return path


class Debian:
    """A fresh Debian in a folder."""

    def __init__(self, folder, binary):
        self.folder, self.leader = folder, None
        folder.mkdir()
        run("tar", "-C", folder, "-xf", archive())
        # Never ask questions; install no recommended packages, which the archive lacks; skip fsync, because nothing here must
        # survive a power failure.
        (folder / "etc/apt/apt.conf.d/90check").write_text('APT::Get::Assume-Yes "true";\nAPT::Install-Recommends "false";\n')
        (folder / "etc/dpkg/dpkg.cfg.d/check").write_text("force-unsafe-io\n")
        # A debug build needs Swift's libraries, which are in no package.
        if swift := re.search(r" => (/\S+)/libswiftCore\.so", run("ldd", binary)):
            say("a debug build: the Debian gets Swift's libraries")
            target = folder / "usr/local/lib/swift"
            target.mkdir()
            for library in Path(swift.group(1)).glob("*.so"):
                shutil.copy(library, target)
            (folder / "etc/ld.so.conf.d/swift.conf").write_text("/usr/local/lib/swift\n")
            run("chroot", folder, "ldconfig")

    @contextlib.contextmanager
    def booted(self):
        """Boots systemd in the folder, with only a loopback network. Yields whether it boots here."""
        console = self.folder.parent / "console"
        with open(console, "w") as output:
            command = ["systemd-nspawn", "--quiet", "--boot", "--register=no", "--keep-unit", "--private-network", "--link-journal=no",
                       f"--machine=package-{os.getpid()}", "-D", str(self.folder)]
            nspawn = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True)
        try:
            try:
                self.leader = wait("the first process", 10, lambda: nspawn.poll() is not None or self.child(nspawn.pid))
                require(nspawn.poll() is None, "it ended")
                wait("systemd", 60, lambda: "running" in self.run("systemctl", "is-system-running", check=False)
                     or "degraded" in self.run("systemctl", "is-system-running", check=False))
            except AssertionError as error:
                say(f"no systemd boots here ({error}): {console.read_text()[-300:]}")
                self.leader = None
            yield self.leader is not None
        finally:
            self.leader = None
            # The first signal asks the Debian to shut down. The second ends systemd-nspawn at once.
            for _ in range(3):
                if nspawn.poll() is None:
                    nspawn.terminate()
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        nspawn.wait(timeout=10)
            nspawn.kill()
            nspawn.wait()

    @staticmethod
    def child(parent):
        """The leader: systemd-nspawn's child that runs init."""
        children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
        return next((pid for pid in children if Path(f"/proc/{pid}/comm").read_text().strip() == "systemd"), None)

    def run(self, *command, **options):
        """Runs a command in the Debian."""
        if self.leader:
            return run("nsenter", "--target", self.leader, "--all", *command, **options)
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}
        return run(*self.entering(), *command, env=environment, **options)

    def entering(self, *options):
        """The command prefix that runs a command in the folder, with /proc, from which Swift reads its arguments."""
        script = 'mount -t proc proc "$0/proc" && exec chroot "$@"'
        return ["unshare", "--mount", "/bin/sh", "-c", script, str(self.folder), *options, str(self.folder)]
