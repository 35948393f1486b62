/** What Weir's documents say at the command line: where a page lies, and what a word of the glossary means. */
#ifndef WEIR_CLI_DOCUMENT_H
#define WEIR_CLI_DOCUMENT_H

#include "base/arena.h"

#include <stdio.h>

/**
 * The folder that holds docs/ of this program: share/doc/weir of the nearest folder above the program, or that folder itself,
 * so that of an installation and the sources of a build. Absolute, in the arena; NULL: there is none.
 */
const char *cli_document_dir(struct weir_arena *arena);

/** Writes text to `file`, the names of pages in it ("docs/howto/upgrade.md") as paths that can be opened. */
void cli_document_write(FILE *file, const char *text);

/**
 * What docs/glossary.md says that a word means: "candidate: a model version that a link may deploy". Case and a plural's
 * "s" do not matter. In the arena; NULL: it is no word of the glossary.
 */
const char *cli_document_meaning(struct weir_arena *arena, const char *word);

#endif
