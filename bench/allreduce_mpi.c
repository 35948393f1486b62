/*
 * Open MPI's side of bench/allreduce.py: all-reduces of the sizes (bytes) given as arguments, in
 * place, measured as `weir-worker bench-allreduce` does. Rank 0 prints a line of JSON.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { WARMUP = 5, SAMPLES = 20, LEAST_SAMPLES = 5, MOST_PER_SAMPLE = 1000 };

static const double sample_s = 100e-6, most_s = 2;

static double time_once(float *buf, int n_elems, int n_times)
{
    MPI_Barrier(MPI_COMM_WORLD);
    double start_s = MPI_Wtime();
    for (int i = 0; i < n_times; i++) {
        MPI_Allreduce(MPI_IN_PLACE, buf, n_elems, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    }
    return (MPI_Wtime() - start_s) / n_times;
}

static int by_size(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static double median_us(float *buf, int n_elems)
{
    double samples[SAMPLES], guess_s = 0;
    for (int i = 0; i < WARMUP; i++) {
        (void)time_once(buf, n_elems, 1);
    }
    guess_s = time_once(buf, n_elems, 3);
    MPI_Bcast(&guess_s, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    int per_sample = (int)(sample_s / guess_s), n = SAMPLES;
    per_sample = per_sample < 1 ? 1 : per_sample > MOST_PER_SAMPLE ? MOST_PER_SAMPLE : per_sample;
    if (n * per_sample * guess_s > most_s) {
        n = (int)(most_s / (per_sample * guess_s));
        n = n < LEAST_SAMPLES ? LEAST_SAMPLES : n;
    }
    for (int i = 0; i < n; i++) {
        double own_s = time_once(buf, n_elems, per_sample);
        MPI_Allreduce(&own_s, &samples[i], 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    }
    qsort(samples, (size_t)n, sizeof samples[0], by_size);
    return samples[n / 2] * 1e6;
}

int main(int argc, char **argv)
{
    int rank = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 1; i < argc; i++) {
        size_t bytes = strtoull(argv[i], NULL, 10);
        float *buf = calloc(bytes / sizeof *buf + 1, sizeof *buf);
        double time_us = buf == NULL ? -1 : median_us(buf, (int)(bytes / sizeof *buf));
        if (rank == 0) {
            printf("%s\"%zu\": %.3f", i == 1 ? "{" : ", ", bytes, time_us);
        }
        free(buf);
    }
    if (rank == 0) {
        printf("}\n");
    }
    MPI_Finalize();
    return 0;
}
