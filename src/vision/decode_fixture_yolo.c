/* YOLO's formulas the other way round. */
#include "vision/decode_fixture_private.h"

static int yolo_places(const struct scene *scene)
{
    int n = 0;
    for (int s = 8; s <= 32; s *= 2) {
        n += places(scene->width, s) * places(scene->height, s);
    }
    return n;
}

/* Row by row: centre, size, score of 1, points, classes. */
static void v5_rows(struct fixture *f, int n_points)
{
    int n = 3 * yolo_places(f->scene), n_columns = 5 + 2 * n_points + f->scene->n_classes, i = 0;
    float *rows = fixture_add(f, "output0", 0.1, 3, 1, n, n_columns);
    FOR_THINGS(f, t)
    {
        i = further(f, t, i, n);
        float *row = rows + i * n_columns;
        row[0] = (float)centre_x(t);
        row[1] = (float)centre_y(t);
        row[2] = (float)wide(t);
        row[3] = (float)high(t);
        row[4] = (float)sqrt(t->score);
        for (int k = 0; k < 2 * n_points; k++) {
            row[5 + k] = (float)t->points[k];
        }
        row[5 + 2 * n_points + t->class_id] = (float)sqrt(t->score);
    }
}

void fixture_yolo_v5(struct fixture *f)
{
    v5_rows(f, 0);
}

void fixture_yolo_v5_face(struct fixture *f)
{
    v5_rows(f, 5);
}

void fixture_yolox(struct fixture *f)
{
    int n_columns = 5 + f->scene->n_classes, first = 0;
    float *rows = fixture_add(f, "output", 0.1, 3, 1, yolo_places(f->scene), n_columns);
    for (int s = 8; s <= 32; s *= 2) {
        int w = places(f->scene->width, s), size = w * places(f->scene->height, s), k = 0;
        FOR_THINGS(f, t)
        {
            if (8 << k++ % 3 != s) { /* one thing after the other to the next stride */
                continue;
            }
            int x = (int)(centre_x(t) / s), y = (int)(centre_y(t) / s);
            float *row = rows + (first + y * w + x) * n_columns;
            row[0] = (float)(centre_x(t) / s - x);
            row[1] = (float)(centre_y(t) / s - y);
            row[2] = (float)log(wide(t) / s);
            row[3] = (float)log(high(t) / s);
            row[4] = (float)sqrt(t->score);
            row[5 + t->class_id] = (float)sqrt(t->score);
        }
        first += size;
    }
}

static void v8_channels(struct fixture *f, int n_points)
{
    int n = yolo_places(f->scene), n_channels = 4 + f->scene->n_classes + 3 * n_points, i = 0;
    float *at = fixture_add(f, "output0", 0.05, 3, 1, n_channels, n);
    FOR_THINGS(f, t)
    {
        i = further(f, t, i, n);
        const double box[] = {centre_x(t), centre_y(t), wide(t), high(t)};
        for (int k = 0; k < 4; k++) {
            at[k * n + i] = (float)box[k];
        }
        at[(4 + t->class_id) * n + i] = (float)t->score;
        for (int k = 0; k < n_points; k++) {
            float *point = at + (4 + f->scene->n_classes + 3 * k) * n + i;
            point[0] = (float)t->points[2 * k];
            point[n] = (float)t->points[2 * k + 1];
            point[2 * n] = 0.9f;
        }
    }
}

void fixture_yolo_v8(struct fixture *f)
{
    v8_channels(f, 0);
}

void fixture_yolo_v8_face(struct fixture *f)
{
    v8_channels(f, 5);
}

void fixture_yolo_v5_raw(struct fixture *f)
{
    static const double sizes[3][3][2] = {{{10, 13}, {16, 30}, {33, 23}},
                                          {{30, 61}, {62, 45}, {59, 119}},
                                          {{116, 90}, {156, 198}, {373, 326}}};
    static const char *const names[] = {"p3", "p4", "p5"};
    int n_columns = 5 + f->scene->n_classes;
    float *heads[3];
    for (int k = 0; k < 3; k++) {
        int s = 8 << k;
        heads[k] = fixture_add(f, names[k], -9, 5, 1, 3, places(f->scene->height, s),
                               places(f->scene->width, s), n_columns);
    }
    FOR_THINGS(f, t)
    {
        int a = any(f, 9);
        while (wide(t) > 3.9 * sizes[a / 3][a % 3][0] || high(t) > 3.9 * sizes[a / 3][a % 3][1]) {
            a = a == 8 ? 0 : a + 1;
        }
        int s = 8 << a / 3, w = places(f->scene->width, s), h = places(f->scene->height, s);
        int x = (int)(centre_x(t) / s), y = (int)(centre_y(t) / s);
        float *row = heads[a / 3] + ((a % 3 * h + y) * w + x) * n_columns;
        row[0] = (float)logit((centre_x(t) / s - x + 0.5) / 2);
        row[1] = (float)logit((centre_y(t) / s - y + 0.5) / 2);
        row[2] = (float)logit(sqrt(wide(t) / sizes[a / 3][a % 3][0]) / 2);
        row[3] = (float)logit(sqrt(high(t) / sizes[a / 3][a % 3][1]) / 2);
        row[4] = (float)logit(sqrt(t->score));
        row[5 + t->class_id] = (float)logit(sqrt(t->score));
    }
}

void fixture_yolo_v8_raw(struct fixture *f)
{
    static const char *const names[] = {"p3", "p4", "p5"};
    float *heads[3];
    for (int k = 0; k < 3; k++) {
        int s = 8 << k;
        heads[k] = fixture_add(f, names[k], -40, 4, 1, 64 + f->scene->n_classes,
                               places(f->scene->height, s), places(f->scene->width, s));
    }
    FOR_THINGS(f, t)
    {
        int k = fmax(wide(t), high(t)) / 2 + 8 < 15 * 8 ? 0 : 2, s = 8 << k;
        int w = places(f->scene->width, s), n = w * places(f->scene->height, s);
        int x = (int)(centre_x(t) / s), y = (int)(centre_y(t) / s);
        float *at = heads[k] + y * w + x;
        for (int j = 0; j < 4; j++) { /* between two whole numbers of places */
            double from = (j % 2 == 0 ? x : y) + 0.5;
            double side = j < 2 ? from - t->box[j] / s : t->box[j] / s - from;
            int whole = (int)side;
            at[(16 * j + whole) * n] = (float)log(1 - (side - whole) + 1e-12);
            at[(16 * j + whole + 1) * n] = (float)log(side - whole + 1e-12);
        }
        at[(64 + t->class_id) * n] = (float)logit(t->score);
    }
}

/* Rows of x1, y1, x2, y2 and two more, behind so many zeros. */
static void rows_of(struct fixture *f, float *row, int n_before, bool is_class_first)
{
    FOR_THINGS(f, t)
    {
        row += n_before;
        for (int j = 0; j < 4; j++) {
            row[j] = (float)t->box[j];
        }
        row[is_class_first ? 5 : 4] = (float)t->score;
        row[is_class_first ? 4 : 5] = (float)t->class_id;
        row += 6;
    }
}

void fixture_yolo_end2end(struct fixture *f)
{
    rows_of(f, fixture_add(f, "output0", 0, 3, 1, 300, 6), 0, false);
}

void fixture_yolo_v7(struct fixture *f)
{
    rows_of(f, fixture_add(f, "output", 0, 2, (int)f->scene->n, 7), 1, true);
}

void fixture_yolo_plugin(struct fixture *f)
{
    int i = 0;
    float *num = fixture_add(f, "num_dets", (double)f->scene->n, 2, 1, 1);
    float *box = fixture_add(f, "det_boxes", 1, 3, 1, 100, 4);
    float *score = fixture_add(f, "det_scores", 0.9, 2, 1, 100);
    float *class = fixture_add(f, "det_classes", 0, 2, 1, 100);
    (void)num;
    FOR_THINGS(f, t)
    {
        for (int j = 0; j < 4; j++) {
            box[4 * i + j] = (float)t->box[j];
        }
        class[i] = (float)t->class_id;
        score[i++] = (float)t->score;
    }
}
