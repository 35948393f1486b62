"""A notebook in a real browser: Jupyter through the proxy, a kernel that survives a restart of the server."""
import json
import pathlib
import shutil
import sys
import unittest

from harness import HttpError, Server, main, wait_until

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "browser"))
import page as browser  # noqa: E402

PLOT = """
kept = 41
from IPython.display import SVG, display
display(SVG('<svg xmlns="http://www.w3.org/2000/svg" width="90" height="40"><circle id="the-plot" r="9" cx="20" cy="20"/></svg>'))
print("first", kept + 1)
"""


def run_cell(page, code, wanted):
    """Put code into a new last cell, run it, wait for what it writes."""
    page.js("""const nb = Jupyter.notebook
        nb.insert_cell_at_bottom('code')
        const cell = nb.get_cells().slice(-1)[0]
        cell.set_text(arguments[0])
        cell.execute()""", code)
    page.has_text("#notebook-container", wanted)


@unittest.skipUnless(shutil.which("jupyter-notebook"), "this machine has no Jupyter")
@unittest.skipUnless(pathlib.Path(browser.CHROMIUM).exists() and pathlib.Path(browser.DRIVER).exists(),
                     "this machine has no Chromium")
class NotebookTest(unittest.TestCase):
    def setUp(self):
        browser.WAIT_S = 40
        self.server = Server("--services-listen", "127.0.0.1:0")
        self.addCleanup(self.server.stop)
        self.server.start()
        self.page = browser.Page()
        self.addCleanup(self.page.close)

    def restart(self):
        """The same ports, as a server of people has them: browsers come back to where they were."""
        port = self.server.url.rsplit(":", 1)[1]
        services = self.notebook["url"].split("/")[2]
        self.server.kill()
        self.server.start("--listen", f"127.0.0.1:{port}", "--services-listen", services)

    def test_a_cell_runs_a_plot_shows_and_the_kernel_survives_the_server(self):
        page = self.page
        self.server.weir("notebook", "start", "paper", "--wait")
        self.notebook = self.server.get("/services?name=paper")["items"][0]
        # A person who is logged in to the console opens the address: no other login is asked for.
        page.driver.get(self.server.post("/session/link")["url"])
        page.one("#log-in").click()
        page.one(".topbar")
        page.driver.get(self.notebook["url"])
        page.until(lambda: "/tree" in page.driver.current_url, "Jupyter's list of files")
        self.assertTrue(page.driver.current_url.startswith(self.notebook["url"]))
        made = page.js("""const done = await fetch(document.body.dataset.baseUrl + 'api/contents', {method: 'POST',
            headers: {'Content-Type': 'application/json', 'X-XSRFToken': ''},
            body: JSON.stringify({type: 'notebook'})})
            return [done.status, await done.text()]""")
        self.assertEqual(made[0], 201, made[1])
        page.driver.get(self.notebook["url"] + "notebooks/" + json.loads(made[1])["path"])
        page.until(lambda: page.js("return !!(window.Jupyter && Jupyter.notebook && Jupyter.notebook.kernel && "
                                   "Jupyter.notebook.kernel.is_connected())"), "a kernel")
        run_cell(page, PLOT, "first 42")
        page.one("#the-plot")
        # Weir's cookie of the console reached neither the program nor its page.
        run_cell(page, "import os; print('token' in os.environ.get('JUPYTER_TOKEN', '') or 'no secret')", "no secret")
        self.assertNotIn("weir_session", page.js("return document.cookie"))
        # The server dies and comes back; the page connects to the same kernel again.
        self.restart()
        # While no server is there, nothing listens at the notebook's address. A page that tries just then takes the
        # refused connection for the kernel's death and gives up for good: then a person presses "Reconnect".
        page.until(lambda: page.js("""const kernel = Jupyter.notebook.kernel
            if (!kernel.is_connected() && !kernel.ws) kernel.reconnect()
            return kernel.is_connected()"""), "the kernel again")
        run_cell(page, "print('second', kept + 2)", "second 43")
        # Saved, stopped, started: the folder is there.
        page.js("Jupyter.notebook.save_notebook()")
        folder = self.server.state / "services" / self.notebook["id"]
        wait_until(lambda: any("first" in one.read_text() for one in folder.glob("*.ipynb")), 20, "a saved notebook")
        self.server.weir("notebook", "stop", "paper")
        wait_until(lambda: self.server.get("/services/" + self.notebook["id"])["state"] == "STOPPED", 30, "its end")
        self.server.weir("notebook", "start", "paper")
        self.assertEqual(self.server.get("/services?name=paper")["items"][0]["url"], self.notebook["url"])

    def test_a_stranger_does_not_get_in(self):
        self.server.post("/projects", {"name": "rivals"})
        self.server.post("/users", {"name": "eve", "kind": "person", "role": "member"})
        self.server.request("PUT", "/api/v1/projects/rivals/members/user/eve", {"role": "ml-engineer"})
        eve = self.server.post("/tokens", {"user": "eve", "name": "t", "role": "ml-engineer"})["secret"]
        self.server.weir("service", "run", "paper", "--wait", "--", "python3", "-m", "http.server",
                         "--bind", "127.0.0.1", "{{port}}")
        notebook = self.server.get("/services?name=paper")["items"][0]
        for path in ("", "/start", "/stop", "/ticket"):
            with self.assertRaises(HttpError) as refused:
                self.server.request("POST" if path else "GET", f"/api/v1/services/{notebook['id']}{path}", token=eve)
            self.assertEqual(refused.exception.code, 404)
        page = self.page
        page.driver.get(self.server.request("POST", "/api/v1/session/link", {}, token=eve)["url"])
        page.one("#log-in").click()
        page.one(".topbar")
        page.driver.get(notebook["url"])
        page.until(lambda: "there is no such service" in page.text("body"), "a refusal")


if __name__ == "__main__":
    main()
