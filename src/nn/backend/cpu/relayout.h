/**
 * Weights of a convolution or linear from their row-major order (k, c, h, w; f32) into the blocked
 * one that oneDNN's kernels like on AVX-512: blocks of some output channels, of which each lies
 * beside the same input channel of its neighbours (f32), or beside two of them (bf16). Gradients
 * come back from such an order.
 *
 * Transposed, for a backward pass: the layout's outputs are the convolution's inputs. Mirrored too,
 * for a backward pass that is done as a forward one by kernels turned round: the cells are taken
 * from the last to the first.
 *
 * oneDNN's own copy takes 1 to 2 ns an element for 3x3 and for rows that are a multiple of the
 * page apart, this one 0.2 to 0.3 of what no cache holds: of a training step of ResNet-50 in bf16,
 * 10 ms of a thread. For that it fetches ahead, and large copies in bf16 go past the caches.
 */
#ifndef WEIR_NN_ONEDNN_RELAYOUT_H
#define WEIR_NN_ONEDNN_RELAYOUT_H

#include "nn/nn.h"

#include <stdbool.h>
#include <stddef.h>

#define RELAYOUT_MAX_TAPS 25

struct relayout {
    size_t k, c, kernel_h, kernel_w; /**< k and c multiples of 16, at most 25 cells. */
    /** Elements from a block of output channels, 16 input channels, an input channel (bf16: a pair
     *  of them), a row of cells and a cell to the next. */
    size_t k_stride, c_block_stride, c_stride, h_stride, w_stride;
    size_t k_block; /**< Multiple of 16. */
    bool is_bf16;
    /** f32: k_block is 16, and of its 16 x 16 channels those that lie beside each other are input
     *  channels: c_stride is that of output channels. As kernels of backward like it. */
    bool is_c_inner;
    /** All above is of the layout: `from` is (c, k, h, w). Not of what is_c_inner. */
    bool is_transposed;
    bool is_mirrored; /**< What is_transposed: the last cell first. */
};

/** The blocked copy is 64-byte aligned, as are the places of its blocks; what pads its last block
 * is left as it is. Threads may copy different weights at once; on return other threads may be told
 * of the copy, what went past the caches included. */
typedef void (*relayout_fn)(const struct relayout *layout, const float *from, void *to);

/** For this machine, and this layout; NULL: neither. */
relayout_fn relayout_for(const struct relayout *layout);

/** The other way, of what is not is_c_inner, transposed nor bf16: blocked to row-major, as
 * gradients go. */
relayout_fn relayout_back_for(const struct relayout *layout);

void relayout_v4(const struct relayout *layout, const float *from, void *to);
void relayout_back_v4(const struct relayout *layout, const float *from, void *to);

#endif
