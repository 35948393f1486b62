"""Every command of docs/howto/*.md and of README.md is played (howto.py), and a page that is stale is seen."""
import concurrent.futures
import os
import pathlib
import tempfile
import unittest

import howto
from harness import ROOT, main

AT_ONCE = int(os.environ.get("WEIR_PAGES", "4"))
FENCE = "```"


class HowTo(unittest.TestCase):
    def test_every_page_is_as_it_says(self):
        pages = [*sorted((ROOT / "docs/howto").glob("*.md")), ROOT / "README.md"]
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            results = list(pool.map(howto.play, pages))
        print(howto.table(results))
        print(howto.unplayed(results))
        for result in results:
            with self.subTest(result.page):
                self.assertEqual("\n".join(result.problems), "")

    def played(self, text):
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder, "page.md")
            page.write_text("<!-- server: none -->\n" + text)
            return "\n".join(howto.play(page).problems)

    def block(self, language, body, comment=""):
        return f"{comment}\n{FENCE}{language}\n{body}\n{FENCE}\n"

    def test_what_is_stale_is_seen(self):
        block = self.block
        self.addCleanup(setattr, howto, "QUIET_S", howto.QUIET_S)
        howto.QUIET_S = 2
        good = block("console", "$ echo 'NAME  STATE'; echo 'a     7'\nNAME  STATE\nb     8")
        for text, said in (
                (good, ""),
                (block("yaml", "a: 1"), "how this block is played"),
                (block("", "words"), "how this block is played"),
                ("\n    weir get jobs\n", "indented"),
                (block("sh", "weir get jobs", "<!-- neds: gpu -->"), "nobody knows the comment"),
                (block("sh", "weir get jobs", "<!-- needs: luck -->"), "no need 'luck'"),
                (block("sh", "weir get jobs --limt 3", "<!-- needs: gpu -->"), "unknown option --limt"),
                (block("sh", "wier", "<!-- needs: gpu -->") + block("sh", "false"), "false: 1"),
                (block("console", "$ echo NAME  STATES\nNAME  STATE"), "was not printed"),
                (block("console", "$ echo 'NAME  KIND'; echo 'a     7'\nNAME  STATE"), "was not printed"),
                (block("console", "$ echo done 3 times\nended 4 times"), "was not printed"),
                (block("console", "$ echo '{\"a\": 1}'\n{\"a\": 2, \"b\": 3}"), "was not printed"),
                (block("console", "$ echo fine\nweir: it is refused"), "echo fine: 0"),
                (block("sh", "echo no; false", "<!-- fails: yes -->"), "does not say 'yes'"),
                (block("sh", "sleep 60"), "silent for 2 s"),
                (block("yaml", "zz: 1", "<!-- part: CMakeLists.txt -->"), "has no line 'zz: 1'")):
            with self.subTest(text):
                (self.assertEqual if said == "" else self.assertIn)(said, self.played(text))


if __name__ == "__main__":
    main()
