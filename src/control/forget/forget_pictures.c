/* Pictures of a person, by what decisions and feedback say. */
#include "control/forget/forget_private.h"

#include "store/stmt.h"
#include "track/forgotten.h"

#include <dirent.h>
#include <unistd.h>

#define PICTURES_PER_STEP 200

#define IN_PROJECT "(:project = '' OR ion IN (SELECT name FROM ions WHERE project = :project))"
#define DECISIONS                                                                                  \
    " FROM decisions WHERE image IS NOT NULL AND " IN_PROJECT                                      \
    " AND (person = :person OR id IN (SELECT decision FROM feedback WHERE truth = :person))"
static const char sql_pictures[] =
    "SELECT id, image, pack, pack_offset, pack_bytes" DECISIONS " LIMIT :n";
static const char sql_unpicture[] =
    "UPDATE decisions SET image = NULL, pack = 0, pack_offset = 0, pack_bytes = 0 WHERE id = :id";

/* The picture of a decision in the folders of replicas: replicas/REPLICA/images/ID.jpg. */
static void remove_image(struct forget_work *work, const char *id)
{
    const char *replicas = weir_arena_printf(work->arena, "%s/replicas", work->forget->state_dir);
    DIR *stream = opendir(replicas);
    for (struct dirent *entry; stream != NULL && (entry = readdir(stream)) != NULL;) {
        if (entry->d_name[0] != '.') {
            (void)unlink(
                weir_arena_printf(work->arena, "%s/%s/images/%s.jpg", replicas, entry->d_name, id));
        }
    }
    if (stream != NULL) {
        (void)closedir(stream);
    }
}

struct picture {
    char *id, *image;
    struct weir_pack_place place;
};

struct pictures {
    struct forget_work *work;
    struct weir_arena *arena;
    struct picture items[PICTURES_PER_STEP];
    size_t n;
};

static weir_status find_pictures(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct pictures *pictures = context;
    const struct weir_forgotten *record = pictures->work->record;
    WEIR_AUTO(weir_stmt_auto_close) struct weir_stmt *stmt = NULL;
    bool has_row;
    pictures->n = 0;
    WEIR_TRY(weir_stmt_open(txn, sql_pictures,
                            WEIR_BINDS(WEIR_BIND_TEXT("person", record->person),
                                       WEIR_BIND_TEXT("project", record->project),
                                       WEIR_BIND_INT("n", PICTURES_PER_STEP)),
                            &stmt, err));
    while (pictures->n < PICTURES_PER_STEP) {
        WEIR_TRY(weir_stmt_step(stmt, &has_row, err));
        if (!has_row) {
            break;
        }
        pictures->items[pictures->n++] = (struct picture){
            .id = weir_stmt_text(stmt, 0, pictures->arena),
            .image = weir_stmt_text(stmt, 1, pictures->arena),
            .place = {weir_stmt_int(stmt, 2), weir_stmt_int(stmt, 3), weir_stmt_int(stmt, 4)}};
    }
    return WEIR_OK;
}

static weir_status unpicture_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    const struct pictures *pictures = context;
    for (size_t i = 0; i < pictures->n; i++) {
        WEIR_TRY(weir_txn_exec(txn, sql_unpicture,
                               WEIR_BINDS(WEIR_BIND_TEXT("id", pictures->items[i].id)), NULL, err));
    }
    return WEIR_OK;
}

static weir_status erase_pictures(struct pictures *pictures, struct weir_error *err)
{
    const struct forget *forget = pictures->work->forget;
    WEIR_TRY(weir_store_read(forget->store, find_pictures, pictures, err));
    for (size_t i = 0; i < pictures->n; i++) {
        const struct picture *picture = &pictures->items[i];
        forget_step(pictures->work, "picture");
        remove_image(pictures->work, picture->id);
        WEIR_TRY(picture->place.pack != 0
                     ? weir_packs_erase(forget->pictures, picture->id, &picture->place, err)
                     : weir_blob_remove(forget->blobs, picture->image, err));
    }
    pictures->work->n_pictures += (int64_t)pictures->n;
    forget_step(pictures->work, "pictures");
    return pictures->n > 0 ? weir_store_write(forget->store, unpicture_in, pictures, err) : WEIR_OK;
}

weir_status forget_pictures(struct forget_work *work, struct weir_error *err)
{
    struct pictures pictures = {.work = work};
    do {
        struct weir_arena arena;
        weir_arena_init(&arena, 0);
        pictures.arena = &arena;
        weir_status status = erase_pictures(&pictures, err);
        weir_arena_fini(&arena);
        WEIR_TRY(status);
    } while (pictures.n == PICTURES_PER_STEP);
    return WEIR_OK;
}
