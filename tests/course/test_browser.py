"""A student's first hour in JupyterLab, in Chromium: a wrong answer, the message, the ✓, a restart. Long: make soak."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys

import pytest

from labs_helpers.course.stub import cell_of
from labs_helpers.first_kernels.lab00 import exercises
from labs_helpers.labs import LABS, ROOT
from labs_helpers.launch.process import end_marked, put_mark
from tests.processes import PATIENCE_S

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(BROWSER is None, reason="there is no Chromium (apt install chromium)"),
]
MS = 1000 * PATIENCE_S


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """JupyterLab as `make lab` opens it, over copies of the labs, without a password."""
    folder = tmp_path_factory.mktemp("browser")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    settings = {"open_browser": False, "port": port, "port_retries": 0, "ip": "127.0.0.1"}
    settings = {"ServerApp": settings, "IdentityProvider": {"token": ""}}
    (folder / "jupyter_server_config.json").write_text(json.dumps(settings))
    env = {**os.environ, "PYTHONPATH": str(ROOT), "LABS_DEVICE": "cpu", "JUPYTER_CONFIG_DIR": str(folder)}
    env |= {"JUPYTERLAB_SETTINGS_DIR": str(folder / "settings"), "JUPYTERLAB_WORKSPACES_DIR": str(folder / "spaces")}
    mark = put_mark(env)
    command = [sys.executable, "-m", "labs_helpers.course.my_labs", "--to", folder / "labs"]
    server = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        said = []
        while "is running at" not in (line := server.stdout.readline()):
            said.append(line)
            assert line, "".join(said)
        yield f"http://127.0.0.1:{port}/lab/tree/labs/{LABS[0].notebook}"
    finally:
        end_marked(mark)
        server.communicate()


@pytest.fixture(scope="module")
def lab(address):
    """The page with lab 00, whose set-up cell has run."""
    api = pytest.importorskip("playwright.sync_api", reason="needs Playwright: pip install -e '.[browser]'")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1366, "height": 900})
        page.set_default_timeout(MS)
        api.expect.set_options(timeout=MS / 10)  # for what a cell that has ended shows
        page.goto(address)
        lab = Lab(page, api.expect)
        lab.run("setup(").to_contain_text("Lab 00 · ran on")
        lab.run("from labs_helpers.course import predict")
        yield lab
        browser.close()


class Lab:
    def __init__(self, page, expect):
        self.page, self.expect = page, expect

    def cell(self, text):
        """The first code cell with this text in its source."""
        source = self.page.locator(".jp-InputArea-editor").filter(has_text=text)
        return self.page.locator(".jp-CodeCell").filter(has=source).first

    def run(self, text, write=None):
        """Run that cell, with another source if `write` is given. Return what can be expected of its output."""
        cell = self.cell(text)
        cell.scroll_into_view_if_needed()
        cell.locator(".cm-content").click()
        if write:
            self.page.keyboard.press("Control+a")
            self.page.keyboard.insert_text(write)
        prompt = cell.locator(".jp-InputPrompt")
        before = prompt.text_content()
        self.page.keyboard.press("Shift+Enter")
        self.expect(prompt).not_to_have_text(before, timeout=MS)
        self.expect(prompt).to_have_text(re.compile(r"\[\d+\]:"), timeout=MS)
        return self.expect(self.output(text))

    def choose(self, menu, *items):
        """An item of a menu, or of a menu in it."""
        self.page.locator(".lm-MenuBar-itemLabel").get_by_text(menu, exact=True).click()
        for item in items:
            self.page.locator(".lm-Menu-itemLabel").get_by_text(item, exact=True).click()

    def output(self, text):
        return self.cell(text).locator(".jp-Cell-outputArea")


ANSWER = cell_of(exercises.programs_needed)
ZERO, CHECK_ZERO = "def programs_needed", "check.programs_needed("


def test_a_wrong_answer_gets_a_short_message(lab):
    lab.run(ZERO, write=re.sub("return .*", "return n // BLOCK", ANSWER))
    lab.run(CHECK_ZERO).to_contain_text("✗")
    said = lab.output(CHECK_ZERO).inner_text()
    assert "Traceback" not in said and len(said.splitlines()) <= 12, said


def test_a_wrong_kernel_says_which_elements_and_its_picture_has_words(lab):
    wrong = cell_of(exercises.vector_add).replace("x + y", "x - y")
    assert wrong != cell_of(exercises.vector_add)
    lab.run("def vector_add", write=wrong)
    lab.run("check.vector_add(").to_contain_text("✗")
    assert "Traceback" not in lab.output("check.vector_add(").inner_text()
    for image in lab.output("check.vector_add(").locator("img").all():
        assert image.get_attribute("alt")


def test_the_mended_answer_gets_its_tick(lab):
    lab.run(ZERO, write=ANSWER)
    lab.run(CHECK_ZERO).to_contain_text("✓")
    lab.run("check.summary()").to_contain_text(re.compile("00/0.*✓|✓.*00/0"))


def test_a_figure_has_alternative_text(lab):
    for needed in (ZERO, CHECK_ZERO, "wave_count = predict(", "waves = programs_needed("):
        lab.run(needed)
    lab.run("pictures.draw_waves(").not_to_contain_text("Traceback")
    image = lab.output("pictures.draw_waves(").locator("img")
    lab.expect(image).to_have_attribute("alt", re.compile(r"\w+ \w+"))


def test_figures_and_messages_show_in_the_dark_theme(lab):
    lab.choose("Settings", "Theme", "JupyterLab Dark")
    lab.expect(lab.page.locator("body")).to_have_attribute("data-jp-theme-light", "false")
    lab.expect(lab.output(CHECK_ZERO)).to_be_visible()


def test_the_tick_is_still_there_after_a_restart(lab):
    """The summary knows it without the check having run again."""
    lab.choose("Kernel", "Restart Kernel and Clear Outputs of All Cells…")
    lab.page.locator(".jp-Dialog .jp-mod-accept").click()
    lab.run("setup(").to_contain_text("Lab 00 · ran on")
    lab.run("from labs_helpers.course import predict")
    lab.run(ZERO)
    lab.run("check.summary()").to_contain_text(re.compile("00/0.*✓|✓.*00/0"))
