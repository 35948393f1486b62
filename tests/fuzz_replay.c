/**
 * Replays a corpus through a fuzz target built without libFuzzer: each file of the folders named on
 * the command line is one input. A missing folder is an error: a corpus that is gone checks
 * nothing.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        perror(path);
        return 1;
    }
    static uint8_t data[1 << 20];
    size_t size = fread(data, 1, sizeof data, file);
    (void)fclose(file);
    (void)LLVMFuzzerTestOneInput(data, size);
    return 0;
}

static int replay_folder(const char *folder, int *n_replayed)
{
    DIR *dir = opendir(folder);
    if (dir == NULL) {
        perror(folder);
        return 1;
    }
    int failures = 0;
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        if (entry->d_name[0] == '.') {
            continue;
        }
        char path[4096];
        int len = snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        failures += len < 0 || len >= (int)sizeof path ? 1 : replay_file(path);
        ++*n_replayed;
    }
    (void)closedir(dir);
    return failures;
}

int main(int argc, char **argv)
{
    int failures = argc < 2, n_replayed = 0;
    for (int i = 1; i < argc; i++) {
        failures += replay_folder(argv[i], &n_replayed);
    }
    printf("%d inputs replayed\n", n_replayed);
    return failures != 0 || n_replayed == 0;
}
