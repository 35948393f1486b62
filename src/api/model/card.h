/**
 * Model card: what is known of a model version on one page. As JSON (GET …/card), and as Markdown for a
 * file.
 *
 * It says what records say and nothing else; what is not known stands in "limits", a sentence each.
 */
#ifndef WEIR_API_CARD_H
#define WEIR_API_CARD_H

#include "base/buf.h"
#include "base/json.h"

/** Classes, labels and evaluations that a card shows of each. */
#define CARD_CLASSES_MAX     100
#define CARD_LABELS_MAX      1000
#define CARD_EVALUATIONS_MAX 50

/** Live figures are those of so long. */
#define CARD_LIVE_MS ((int64_t)7 * 24 * 3600 * 1000)

/**
 * A card as Markdown. Text that people, programs and files say cannot become markup: in a line its signs
 * are escaped; a description, which is Markdown itself, is quoted, and its tags and links are text.
 * Pure.
 *
 * @param out  Its text is added; out->status says LIMIT if it has no room.
 */
void card_markdown(const json_t *card, struct weir_buf *out);

/** One text of a single line, escaped: no markup, no line break, no address that becomes a link. Pure. */
void card_escape(const char *text, struct weir_buf *out);

#endif
