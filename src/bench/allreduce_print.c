#include "bench/allreduce.h"

#include "base/json.h"

double allreduce_algorithm_gb_s(const struct allreduce_row *row)
{
    return row->time_us > 0 ? (double)row->bytes / row->time_us / 1e3 : 0;
}

static double bus_gb_s(const struct allreduce_row *row, int n_ranks)
{
    return allreduce_algorithm_gb_s(row) * 2 * (n_ranks - 1) / n_ranks;
}

const char *allreduce_type_name(enum weir_comm_type type)
{
    static const char *const names[] = {"float", "double", "int64"};
    return names[type];
}

static double mean_bus_gb_s(const struct allreduce_row *rows, size_t n_rows, int n_ranks)
{
    double sum = 0;
    for (size_t i = 0; i < n_rows; i++) {
        sum += bus_gb_s(&rows[i], n_ranks);
    }
    return n_rows > 0 ? sum / (double)n_rows : 0;
}

void allreduce_print_head(const struct weir_comm *comm, const struct allreduce_plan *plan,
                          FILE *file)
{
    (void)fprintf(file,
                  "# all-reduce of %d ranks over %s (%s sent as %s), %s memory; samples %lld, "
                  "warm-up %lld\n#\n",
                  weir_comm_size(comm), weir_comm_transport(comm), allreduce_type_name(plan->type),
                  plan->type == WEIR_COMM_F32 ? plan->options->wire : "itself",
                  plan->options->is_private ? "private" : "the communicator's",
                  (long long)plan->options->iterations, (long long)plan->options->warmup);
    (void)fprintf(file, "# %11s %13s %9s %7s %10s %8s %8s %7s %s\n", "size", "count", "type",
                  "redop", "time", "algbw", "busbw", "#wrong", "algorithm");
    (void)fprintf(file, "# %11s %13s %9s %7s %10s %8s %8s\n", "(B)", "(elements)", "", "", "(us)",
                  "(GB/s)", "(GB/s)");
}

void allreduce_print_row(const struct weir_comm *comm, const struct allreduce_plan *plan,
                         const struct allreduce_row *row, FILE *file)
{
    (void)fprintf(file, "%13zu %13zu %9s %7s %10.2f %8.2f %8.2f %7lld %s\n", row->bytes,
                  row->n_elems, allreduce_type_name(plan->type), "sum", row->time_us,
                  allreduce_algorithm_gb_s(row), bus_gb_s(row, weir_comm_size(comm)),
                  (long long)row->n_wrong, row->algorithm);
    (void)fflush(file);
}

void allreduce_print_foot(const struct weir_comm *comm, const struct allreduce_row *rows,
                          size_t n_rows, FILE *file)
{
    int64_t n_wrong = 0;
    for (size_t i = 0; i < n_rows; i++) {
        n_wrong += rows[i].n_wrong;
    }
    (void)fprintf(file, "# Out of bounds values : %lld %s\n# Avg bus bandwidth    : %.4f\n",
                  (long long)n_wrong, n_wrong == 0 ? "OK" : "FAILED",
                  mean_bus_gb_s(rows, n_rows, weir_comm_size(comm)));
}

weir_status allreduce_print_json(const struct weir_comm *comm, const struct allreduce_plan *plan,
                                 const struct allreduce_row *rows, size_t n_rows, FILE *file)
{
    int n_ranks = weir_comm_size(comm);
    json_t *results = json_array();
    for (size_t i = 0; i < n_rows; i++) {
        const struct allreduce_row *row = &rows[i];
        (void)json_array_append_new(
            results,
            json_pack("{s:I,s:I,s:f,s:f,s:f,s:f,s:i,s:I,s:s}", "bytes", (json_int_t)row->bytes,
                      "count", (json_int_t)row->n_elems, "time_us", row->time_us, "least_us",
                      row->least_us, "algbw_gb_s", allreduce_algorithm_gb_s(row), "busbw_gb_s",
                      bus_gb_s(row, n_ranks), "samples", row->n_samples, "wrong",
                      (json_int_t)row->n_wrong, "algorithm", row->algorithm));
    }
    json_t *whole = json_pack(
        "{s:s,s:i,s:s,s:s,s:s,s:s,s:b,s:f,s:o}", "kind", "allreduce", "ranks", n_ranks, "transport",
        weir_comm_transport(comm), "type", allreduce_type_name(plan->type), "wire",
        plan->options->wire, "redop", "sum", "private_memory", (int)plan->options->is_private,
        "mean_busbw_gb_s", mean_bus_gb_s(rows, n_rows, n_ranks), "results", results);
    weir_status status =
        whole == NULL || json_dumpf(whole, file, JSON_INDENT(1) | JSON_REAL_PRECISION(6)) != 0
            ? WEIR_ERR_NOMEM
            : WEIR_OK;
    json_decref(whole);
    (void)fputc('\n', file);
    return status;
}
