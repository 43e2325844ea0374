"""Programs of the system that need files outside of /usr work in the sandbox."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from agents.sandbox import process
from agents.sandbox.command import Sandbox
from agents.sandbox.process import Ended
from tests.support.sandboxes import bash

JAVA = """
import java.security.MessageDigest;
import java.util.logging.Logger;
class Digest {
    public static void main(String[] arguments) throws Exception {
        System.out.println(MessageDigest.getInstance("SHA-256").digest().length);
        Logger.getLogger("digest").info("logged");
    }
}
"""


def needs(program: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(not shutil.which(program, path="/usr/bin"), reason=f"{program} is not installed")


def test_configuration_is_found_by_its_pattern(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names of folders contain versions, and several versions may be installed."""
    for name in ("java-17/security", "java-21/security", "java-21/management"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.setattr(process, "CONFIGURATION", (f"{tmp_path}/java-*/security", f"{tmp_path}/missing"))
    found = [path for path in process.system.__wrapped__().paths if path.startswith(str(tmp_path))]
    assert found == [f"{tmp_path}/java-17/security", f"{tmp_path}/java-21/security"]


@needs("javac")
async def test_java_compiles_and_runs_a_program(sandbox: Sandbox) -> None:
    ended, output = await bash(sandbox, f"cat > Digest.java << END\n{JAVA}\nEND\njavac Digest.java && java Digest")
    assert ended == Ended("exit", 0)
    assert output.startswith("32\n")
    assert "INFO: logged" in output


@needs("java")
async def test_files_of_java_and_maven_with_passwords_are_invisible(sandbox: Sandbox) -> None:
    """Passwords are documented to be in jmxremote.password of Java and in settings.xml of Maven."""
    _, output = await bash(sandbox, "ls -d /etc/java-*/* /etc/maven/* 2> /dev/null")
    shown = {Path(path).name for path in output.split()}
    assert shown <= {"security", "logging.properties", "m2.conf", "logging"}


@needs("mvn")
async def test_maven_starts(sandbox: Sandbox) -> None:
    ended, output = await bash(sandbox, "mvn --version")
    assert (ended, "Apache Maven" in output) == (Ended("exit", 0), True)


@needs("fc-match")
async def test_fonts_are_found_without_a_cache_in_the_workspace(sandbox: Sandbox) -> None:
    ended, output = await bash(sandbox, "fc-match sans; ls -A")
    assert ended == Ended("exit", 0)
    assert len(output.splitlines()) == 1
    assert "Fontconfig error" not in output


@needs("pdflatex")
async def test_tex_finds_its_formats(sandbox: Sandbox) -> None:
    text = r"\documentclass{article}\begin{document}Hello\end{document}"
    ended, output = await bash(sandbox, f"echo '{text}' > x.tex; pdflatex -interaction=batchmode x.tex; ls -A")
    assert ended == Ended("exit", 0)
    assert {"x.aux", "x.log", "x.pdf", "x.tex"} == set(output.split("\n")[-5:-1])
