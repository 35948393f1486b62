/** Pages of the decisions that a version touched: behind the same totals as the counts. */
#include "control/lineage/lineage_private.h"

#include <stdlib.h>

static int by_last(const void *a, const void *b)
{
    const struct weir_decision_total *x = a, *y = b;
    return (x->last_ms < y->last_ms) - (x->last_ms > y->last_ms);
}

static weir_status answer_page(struct lineage *lineage, struct control_lineage_page *page,
                               struct weir_error *err)
{
    struct lineage_totals *totals = &lineage->totals;
    if (totals->n > 0) {
        qsort(totals->items, totals->n, sizeof *totals->items, by_last);
    }
    return weir_decisions_of_totals(lineage->txn, totals->items, totals->n, page->cursor,
                                    page->limit, lineage->arena, &page->items, &page->n,
                                    &page->next, err);
}

weir_status control_lineage_version_decisions(struct weir_txn *txn, const char *model,
                                              int64_t version, struct weir_arena *arena,
                                              struct control_lineage_page *page,
                                              struct weir_error *err)
{
    struct lineage lineage = {.txn = txn, .arena = arena};
    struct weir_model_version row;
    WEIR_TRY(lineage_version_row(&lineage, model, version, &row, err));
    WEIR_TRY(lineage_add_places(&lineage, &row, err));
    return answer_page(&lineage, page, err);
}

weir_status control_lineage_dataset_decisions(struct weir_txn *txn, const char *dataset,
                                              int64_t version, struct weir_arena *arena,
                                              struct control_lineage_page *page,
                                              struct weir_error *err)
{
    struct lineage lineage = {.txn = txn, .arena = arena};
    WEIR_TRY(lineage_go_forward(&lineage, dataset, version, err));
    return answer_page(&lineage, page, err);
}
