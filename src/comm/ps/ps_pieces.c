#include "comm/ps/ps_private.h"

/* A piece is what is sent, summed and updated at once: large enough that its bytes and not its
 * messages take the time, small enough for caches and for one to follow another. */
#define PIECE_ELEMS_MOST  ((size_t)128 << 10)
#define PIECE_ELEMS_LEAST WEIR_PS_PIECE_UNIT
#define PIECES_A_SERVER   4
/* Pieces are numbered in 16 bits of a message's tag. */
#define PIECES_MOST ((size_t)32768)

struct ps_layout ps_layout_of(size_t n_elems, int n_servers)
{
    size_t wanted = n_elems / ((size_t)n_servers * PIECES_A_SERVER);
    size_t piece = WEIR_MIN(WEIR_MAX(wanted, PIECE_ELEMS_LEAST), PIECE_ELEMS_MOST);
    piece = WEIR_MAX(piece, n_elems / PIECES_MOST + 1);
    piece = (piece + WEIR_PS_PIECE_UNIT - 1) / WEIR_PS_PIECE_UNIT * WEIR_PS_PIECE_UNIT;
    return (struct ps_layout){.n_elems = n_elems,
                              .piece_elems = piece,
                              .n_pieces = (n_elems + piece - 1) / piece,
                              .n_servers = n_servers};
}

size_t ps_piece_first(const struct ps_layout *layout, size_t i_piece)
{
    return i_piece * layout->piece_elems;
}

size_t ps_piece_elems(const struct ps_layout *layout, size_t i_piece)
{
    return WEIR_MIN(layout->n_elems - ps_piece_first(layout, i_piece), layout->piece_elems);
}

size_t ps_n_own(const struct ps_layout *layout, int i_server)
{
    const size_t n_servers = (size_t)layout->n_servers;
    return (layout->n_pieces + n_servers - 1 - (size_t)i_server) / n_servers;
}

int ps_n_owners(const struct ps_layout *layout)
{
    return (int)WEIR_MIN(layout->n_pieces, (size_t)layout->n_servers);
}

bool weir_ps_piece(size_t n_elems, int n_servers, int i_server, size_t i, size_t *out_first,
                   size_t *out_n)
{
    const struct ps_layout layout = ps_layout_of(n_elems, n_servers);
    size_t i_piece = i * (size_t)n_servers + (size_t)i_server;
    if (i_piece >= layout.n_pieces) {
        return false;
    }
    *out_first = ps_piece_first(&layout, i_piece);
    *out_n = ps_piece_elems(&layout, i_piece);
    return true;
}
