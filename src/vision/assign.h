/**
 * Assign: which rows of a table are joined to which columns so that the costs are least together. Pure; inside vision.
 */
#ifndef WEIR_VISION_ASSIGN_H
#define WEIR_VISION_ASSIGN_H

#include <stddef.h>
#include <stdint.h>

#define ASSIGN_MAX 256 /**< Rows, and columns. */

/**
 * The exact optimum, by shortest augmenting paths (the Hungarian method as Jonker and Volgenant run it).
 *
 * @param costs  n_rows × n_cols, by rows; 0 to 1. A row that stays alone costs 1, so a pair of 1 or more is never joined.
 * @param out_cols  n_rows: the column of each row, -1 for one that stays alone.
 * Cost: n² where pairs are clear, n³ where all compete. No memory but the stack's: 20 KB.
 */
void assign_least(const float *costs, size_t n_rows, size_t n_cols, int32_t *out_cols);

#endif
