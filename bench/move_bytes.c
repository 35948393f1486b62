/*
 * The bound of bench/allreduce.py's shaped links: every rank sends every other what a direct
 * all-reduce of so many bytes sends it, in plain sockets, and nothing is added or waited for.
 *
 *     move_bytes RANK N_RANKS HOST_PREFIX PORT BYTES...    rank r listens at HOST_PREFIX(r + 1)
 *
 * Rank 0 prints a line of JSON: bytes to the median time in microseconds, of the slowest rank.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MOST_RANKS = 16, WARMUP = 3, SAMPLES = 9 };

static int rank, n_ranks, sockets[MOST_RANKS];

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void connect_all(const char *prefix, int port)
{
    int one = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons((uint16_t)(port + rank))};
    (void)setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(listener, (struct sockaddr *)&any, sizeof any) != 0 || listen(listener, 16) != 0) {
        fail("listen");
    }
    for (int r = 0; r < rank; r++) { /* the lower ranks listen */
        struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)(port + r))};
        char host[64];
        (void)snprintf(host, sizeof host, "%s%d", prefix, r + 1);
        if (inet_pton(AF_INET, host, &to.sin_addr) != 1) {
            fail(host);
        }
        const struct timespec pause = {.tv_nsec = 10000000};
        for (;;) {
            sockets[r] = socket(AF_INET, SOCK_STREAM, 0);
            if (connect(sockets[r], (struct sockaddr *)&to, sizeof to) == 0) {
                break;
            }
            close(sockets[r]);
            nanosleep(&pause, NULL);
        }
        int32_t self = rank;
        if (write(sockets[r], &self, sizeof self) != sizeof self) {
            fail("write");
        }
    }
    for (int i = rank + 1; i < n_ranks; i++) {
        int32_t who = 0;
        int fd = accept(listener, NULL, NULL);
        if (fd < 0 || read(fd, &who, sizeof who) != sizeof who) {
            fail("accept");
        }
        sockets[who] = fd;
    }
    for (int r = 0; r < n_ranks; r++) {
        if (r != rank) {
            (void)setsockopt(sockets[r], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        }
    }
    close(listener);
}

/** So many bytes to each other rank, and as many from it. */
static void move(uint8_t *out, uint8_t *in, size_t bytes)
{
    size_t sent[MOST_RANKS] = {0}, got[MOST_RANKS] = {0};
    for (int n_open = n_ranks - 1; n_open > 0;) {
        struct pollfd polls[MOST_RANKS];
        n_open = 0;
        for (int r = 0; r < n_ranks; r++) {
            short events = (short)((sent[r] < bytes ? POLLOUT : 0) | (got[r] < bytes ? POLLIN : 0));
            polls[r] =
                (struct pollfd){.fd = r == rank || events == 0 ? -1 : sockets[r], .events = events};
            n_open += polls[r].fd >= 0;
        }
        if (n_open > 0 && poll(polls, (nfds_t)n_ranks, -1) < 0) {
            fail("poll");
        }
        for (int r = 0; n_open > 0 && r < n_ranks; r++) {
            const size_t at = (size_t)r * bytes;
            if (polls[r].fd >= 0 && (polls[r].revents & POLLIN) != 0) {
                ssize_t n = recv(sockets[r], in + at + got[r], bytes - got[r], MSG_DONTWAIT);
                if (n == 0 || (n < 0 && errno != EAGAIN)) {
                    fail("recv");
                }
                got[r] += n > 0 ? (size_t)n : 0;
            }
            if (polls[r].fd >= 0 && (polls[r].revents & POLLOUT) != 0) {
                ssize_t n = send(sockets[r], out + at + sent[r], bytes - sent[r], MSG_DONTWAIT);
                if (n < 0 && errno != EAGAIN) {
                    fail("send");
                }
                sent[r] += n > 0 ? (size_t)n : 0;
            }
        }
    }
}

/** The longest of all ranks' times. */
static double longest_s(double own_s)
{
    double out[MOST_RANKS], in[MOST_RANKS], longest = own_s;
    for (int r = 0; r < n_ranks; r++) {
        out[r] = own_s;
    }
    move((uint8_t *)out, (uint8_t *)in, sizeof own_s);
    for (int r = 0; r < n_ranks; r++) {
        longest = r != rank && in[r] > longest ? in[r] : longest;
    }
    return longest;
}

static int by_size(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

int main(int argc, char **argv)
{
    if (argc < 6) {
        (void)fprintf(stderr, "move_bytes RANK N_RANKS HOST_PREFIX PORT BYTES...\n");
        return 2;
    }
    rank = (int)strtol(argv[1], NULL, 10);
    n_ranks = (int)strtol(argv[2], NULL, 10);
    if (rank < 0 || rank >= n_ranks || n_ranks > MOST_RANKS) {
        (void)fprintf(stderr, "rank %d of %d: at most %d\n", rank, n_ranks, MOST_RANKS);
        return 2;
    }
    connect_all(argv[3], (int)strtol(argv[4], NULL, 10));
    for (int i = 5; i < argc; i++) {
        /* A slice there to be summed, and the sum of the own one. */
        const size_t all = strtoull(argv[i], NULL, 10), bytes = 2 * (all / (size_t)n_ranks);
        uint8_t *out = calloc((size_t)n_ranks, bytes + 1), *in = calloc((size_t)n_ranks, bytes + 1);
        double samples[SAMPLES];
        for (int k = -WARMUP; k < SAMPLES; k++) {
            (void)longest_s(0); /* together */
            double start_s = now_s();
            move(out, in, bytes);
            samples[k < 0 ? 0 : k] = longest_s(now_s() - start_s);
        }
        qsort(samples, SAMPLES, sizeof samples[0], by_size);
        if (rank == 0) {
            printf("%s\"%zu\": %.1f%s", i == 5 ? "{" : ", ", all, samples[SAMPLES / 2] * 1e6,
                   i + 1 == argc ? "}\n" : "");
        }
        free(in);
        free(out);
    }
    return 0;
}
