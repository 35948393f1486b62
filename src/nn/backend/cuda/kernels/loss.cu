/* Losses, in f32: a block for each image. */

INLINE int is_counted(const struct gpu_loss_args *a, unsigned image)
{
    return a->labels[image] >= 0 && (int)image < a->step->n_images;
}

/* What the loss's gradient is multiplied by: 1 over the labelled images, and the loss scale. */
INLINE double gradient_factor(const struct gpu_loss_args *a)
{
    double scale = a->scale_of_loss ? (double)a->scale_of_loss->scale : 1;
    return a->step->inv_n_labelled * scale;
}

/* The largest of a thread's scores and where it is; -1 if one is NaN, so that NaN never counts as
 * correct. */
INLINE void find_largest(const float *scores, int n, unsigned thread, float *largest, int *at)
{
    float best = -INFINITY;
    int best_at = n;
    for (int i = (int)thread; i < n; i += BLOCK_THREADS) {
        if (best_at >= 0 && scores[i] != scores[i]) {
            best_at = -1;
        } else if (best_at >= 0 && (scores[i] > best || best_at == n)) {
            best = scores[i];
            best_at = i;
        }
    }
    *largest = best;
    *at = best_at;
}

/* The same of all threads: the first of equals. */
INLINE int largest_of_all(const float *largest, const int *at, float *out)
{
    float best = largest[0];
    int best_at = at[0];
    for (int i = 1; i < BLOCK_THREADS; i++) {
        if (best_at < 0 || at[i] < 0) {
            best_at = -1;
        } else if (largest[i] > best || (largest[i] == best && at[i] < best_at)) {
            best = largest[i];
            best_at = at[i];
        }
    }
    *out = best;
    return best_at;
}

/* A thread's sum of exp(scale * (score - largest)). */
INLINE double sum_exp(const float *scores, int n, double scale, float largest, unsigned thread)
{
    double sum = 0;
    for (int i = (int)thread; i < n; i += BLOCK_THREADS) {
        sum += exp(scale * ((double)scores[i] - (double)largest));
    }
    return sum;
}

KERNEL(softmax_loss_forward, struct gpu_loss_args)
{
    SHARED float largest[BLOCK_THREADS];
    SHARED int at[BLOCK_THREADS];
    SHARED double sums[BLOCK_THREADS];
    SHARED double plain[BLOCK_THREADS];
    const float *x = a.x + (u64)BLOCK * (u64)a.n_classes;
    EACH_THREAD
    {
        find_largest(x, a.n_classes, THREAD, &largest[THREAD], &at[THREAD]);
    }
    BARRIER
    EACH_THREAD
    {
        float best;
        (void)largest_of_all(largest, at, &best);
        sums[THREAD] = sum_exp(x, a.n_classes, 1, best, THREAD);
        plain[THREAD] = sum_of(x, a.n_classes, THREAD);
    }
    BARRIER
    EACH_THREAD
    {
        if (THREAD == 0) {
            float best;
            int best_at = largest_of_all(largest, at, &best), label = a.labels[BLOCK];
            struct gpu_loss loss = {0, 0, 0};
            if (is_counted(&a, BLOCK)) {
                double smoothing = a.is_training ? (double)a.smoothing : 0;
                double worth = (1 - smoothing) * (double)x[label];
                worth += smoothing > 0 ? smoothing / a.n_classes * sum_all(plain) : 0;
                loss.loss = (double)best + log(sum_all(sums)) - worth;
                loss.n_correct = best_at == label;
                loss.n_labelled = 1;
            }
            a.losses[BLOCK] = loss;
        }
    }
}

/* d loss / d logit = (softmax - how much the label is this class) / labelled images. */
KERNEL(softmax_loss_backward, struct gpu_loss_args)
{
    SHARED float largest[BLOCK_THREADS];
    SHARED int at[BLOCK_THREADS];
    SHARED double sums[BLOCK_THREADS];
    const float *x = a.x + (u64)BLOCK * (u64)a.n_classes;
    float *dx = a.dx + (u64)BLOCK * (u64)a.n_classes;
    EACH_THREAD
    {
        find_largest(x, a.n_classes, THREAD, &largest[THREAD], &at[THREAD]);
    }
    BARRIER
    EACH_THREAD
    {
        float best;
        (void)largest_of_all(largest, at, &best);
        sums[THREAD] = sum_exp(x, a.n_classes, 1, best, THREAD);
    }
    BARRIER
    EACH_THREAD
    {
        float best;
        int label = a.labels[BLOCK], counts = is_counted(&a, BLOCK);
        (void)largest_of_all(largest, at, &best);
        double total = sum_all(sums), rest = (double)a.smoothing / a.n_classes;
        for (int i = (int)THREAD; i < a.n_classes; i += BLOCK_THREADS) {
            double target = rest + (i == label ? 1 - (double)a.smoothing : 0);
            double g = counts ? exp((double)x[i] - (double)best) / total - target : 0;
            put_f32(&dx[i], g * gradient_factor(&a), a.adds);
        }
    }
}

/* The images' losses added up, in a fixed order, by one block. */
KERNEL(loss_sum, struct gpu_loss_args)
{
    SHARED double losses[BLOCK_THREADS];
    SHARED int correct[BLOCK_THREADS];
    SHARED int labelled[BLOCK_THREADS];
    EACH_THREAD
    {
        struct gpu_loss sum = {0, 0, 0};
        for (int i = (int)THREAD; i < a.n; i += BLOCK_THREADS) {
            sum.loss += a.losses[i].loss;
            sum.n_correct += a.losses[i].n_correct;
            sum.n_labelled += a.losses[i].n_labelled;
        }
        losses[THREAD] = sum.loss;
        correct[THREAD] = sum.n_correct;
        labelled[THREAD] = sum.n_labelled;
    }
    BARRIER
    EACH_THREAD
    {
        if (THREAD == 0) {
            struct gpu_loss sum = {sum_all(losses), 0, 0};
            for (int i = 0; i < BLOCK_THREADS; i++) {
                sum.n_correct += correct[i];
                sum.n_labelled += labelled[i];
            }
            *a.sum = sum;
        }
    }
}

/* ---- additive angular margin -------------------------------------------------------------------- */

/* Class weights over their norms, and the norms behind them: a block for each class. */
KERNEL(margin_refresh, struct gpu_loss_args)
{
    SHARED double squares[BLOCK_THREADS];
    const float *w = a.weights + (u64)BLOCK * (u64)a.dim;
    EACH_THREAD
    {
        squares[THREAD] = products_of(w, 0, w, 0, a.dim, THREAD);
    }
    BARRIER
    EACH_THREAD
    {
        double norm = fmax(sqrt(sum_all(squares)), L2_EPS);
        for (int i = (int)THREAD; i < a.dim; i += BLOCK_THREADS) {
            a.saved[(u64)BLOCK * (u64)a.dim + (u64)i] = (float)((double)w[i] / norm);
        }
        if (THREAD == 0) {
            a.saved[(u64)a.n_classes * (u64)a.dim + (u64)BLOCK] = (float)norm;
        }
    }
}

/* Cosines of each image with each class. */
KERNEL(margin_scores, struct gpu_loss_args)
{
    EACH_THREAD
    {
        u64 step = (u64)BLOCKS * BLOCK_THREADS, n = (u64)a.n * (u64)a.n_classes;
        for (u64 i = (u64)BLOCK * BLOCK_THREADS + THREAD; i < n; i += step) {
            const float *x = a.x + i / (u64)a.n_classes * (u64)a.dim;
            const float *w = a.saved + i % (u64)a.n_classes * (u64)a.dim;
            double dot = 0;
            for (int j = 0; j < a.dim; j++) {
                dot += (double)x[j] * (double)w[j];
            }
            a.scores[i] = (float)dot;
        }
    }
}

#define PI 3.14159265358979323846

/* cos(theta + margin) of c = cos(theta), and its derivative by c; beyond pi - margin it goes on
 * falling. */
INLINE double with_margin(double c, double margin, double *out_slope)
{
    double sine = sqrt(fmax(1 - c * c, 1e-12));
    if (c <= cos(PI - margin)) {
        *out_slope = 1;
        return c - margin * sin(margin);
    }
    *out_slope = cos(margin) + c * sin(margin) / sine;
    return c * cos(margin) - sine * sin(margin);
}

/* The cosines of an image become the loss's gradient by them. */
KERNEL(margin_loss, struct gpu_loss_args)
{
    SHARED float largest[BLOCK_THREADS];
    SHARED int at[BLOCK_THREADS];
    SHARED double sums[BLOCK_THREADS];
    SHARED float target[2]; /* with the margin, and its slope */
    SHARED int is_correct[1];
    float *scores = a.scores + (u64)BLOCK * (u64)a.n_classes;
    int label = a.labels[BLOCK], counts = is_counted(&a, BLOCK);
    EACH_THREAD
    {
        find_largest(scores, a.n_classes, THREAD, &largest[THREAD], &at[THREAD]);
    }
    BARRIER
    EACH_THREAD
    {
        if (THREAD == 0) {
            float best;
            double slope = 1;
            is_correct[0] = largest_of_all(largest, at, &best) == label;
            if (counts) {
                scores[label] = (float)with_margin((double)scores[label], (double)a.margin, &slope);
                target[0] = scores[label];
            }
            target[1] = (float)slope;
        }
    }
    BARRIER
    EACH_THREAD
    {
        /* The largest before the margin is at least the largest behind it. */
        float best;
        (void)largest_of_all(largest, at, &best);
        sums[THREAD] = sum_exp(scores, a.n_classes, (double)a.scale, best, THREAD);
    }
    BARRIER
    EACH_THREAD
    {
        float best;
        (void)largest_of_all(largest, at, &best);
        double log_sum = (double)a.scale * (double)best + log(sum_all(sums));
        for (int k = (int)THREAD; k < a.n_classes; k += BLOCK_THREADS) {
            double p = exp((double)a.scale * (double)scores[k] - log_sum);
            double g = (double)a.scale * (p - (k == label)) * (k == label ? (double)target[1] : 1);
            scores[k] = counts ? (float)(g * gradient_factor(&a)) : 0;
        }
        if (THREAD == 0) {
            struct gpu_loss loss = {0, 0, 0};
            if (counts) {
                loss.loss = log_sum - (double)a.scale * (double)target[0];
                loss.n_correct = is_correct[0];
                loss.n_labelled = 1;
            }
            a.losses[BLOCK] = loss;
        }
    }
}

KERNEL(margin_backward, struct gpu_loss_args)
{
    EACH_THREAD
    {
        u64 step = (u64)BLOCKS * BLOCK_THREADS, n = (u64)a.n * (u64)a.dim;
        for (u64 i = (u64)BLOCK * BLOCK_THREADS + THREAD; i < n; i += step) {
            const float *g = a.scores + i / (u64)a.dim * (u64)a.n_classes;
            double sum = 0;
            for (int k = 0; k < a.n_classes; k++) {
                sum += (double)g[k] * (double)a.saved[(u64)k * (u64)a.dim + i % (u64)a.dim];
            }
            put_f32(&a.dx[i], sum, a.adds);
        }
    }
}

/* Through the normalisation of the class weights: dW = (d - w (w.d)) / |W|. A block for each class. */
KERNEL(margin_weight_gradient, struct gpu_loss_args)
{
    SHARED double dots[BLOCK_THREADS];
    const float *w = a.saved + (u64)BLOCK * (u64)a.dim;
    float *gradient = a.gradient + (u64)BLOCK * (u64)a.dim;
    EACH_THREAD
    {
        double dot = 0;
        for (int i = (int)THREAD; i < a.dim; i += BLOCK_THREADS) {
            double sum = 0;
            for (int n = 0; n < a.n; n++) {
                sum += (double)a.scores[(u64)n * (u64)a.n_classes + BLOCK] *
                       (double)a.x[(u64)n * (u64)a.dim + (u64)i];
            }
            gradient[i] = (float)sum;
            dot += sum * (double)w[i];
        }
        dots[THREAD] = dot;
    }
    BARRIER
    EACH_THREAD
    {
        double norm = (double)a.saved[(u64)a.n_classes * (u64)a.dim + BLOCK];
        double dot = sum_all(dots);
        for (int i = (int)THREAD; i < a.dim; i += BLOCK_THREADS) {
            gradient[i] = (float)(((double)gradient[i] - (double)w[i] * dot) / norm);
        }
    }
}
