/**
 * Old words of ION documents: each is accepted for one version after it was replaced, with a warning.
 */
#ifndef WEIR_ION_OLD_WORDS_H
#define WEIR_ION_OLD_WORDS_H

#include "base/json.h"

/**
 * Replace the old words of a document by those of today. What is no document is left as it is.
 *
 * @param document  Changed in place. Where old and new stand side by side, both stay, and the old
 *                  one is refused as an unknown key.
 * @param warnings  Array that gets a sentence for each word that was replaced; borrowed.
 */
void weir_ion_replace_old_words(json_t *document, json_t *warnings);

#endif
