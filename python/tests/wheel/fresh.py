"""What the tests of the wheel share: the file, and commands in an environment that says nothing of this machine."""
import os
import pathlib
import subprocess
import sys
import tempfile

SYSTEM = "/usr/local/bin:/usr/bin:/bin"


def wheel_for(python, folder):
    """The wheel that this Python takes: that of the stable ABI from 3.12 on, else that of its own version."""
    version = run(python, "-c", "import sys; print('%d%d' % sys.version_info[:2])").strip()
    abi = "abi3" if int(version) >= 312 else f"cp{version}"
    wheels = list(pathlib.Path(folder).glob(f"*-{abi}-*.whl"))
    if len(wheels) != 1:
        sys.exit(f"{folder} holds {len(wheels)} wheels for {abi}, not one: run make wheel")
    return wheels[0]


def run(*command, path="", **environment):
    """What the command prints; its end in an error is the test's."""
    folders = f"{path}:{SYSTEM}" if path else SYSTEM
    done = subprocess.run([str(part) for part in command], env={"PATH": folders, "HOME": tempfile.gettempdir(), **environment},
                          cwd="/", capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def pip(python, *arguments):
    """This process's pip for that Python, with this process's environment, which may name a proxy or a cache."""
    subprocess.run([sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--disable-pip-version-check",
                    *map(str, arguments)], check=True, env={**os.environ, "PYTHONPATH": ""})
