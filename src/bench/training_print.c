/* What people and programs see: tf_cnn_benchmarks' lines, or one JSON object. */
#include "bench/training.h"

#include <string.h>

#define RULE            "----------------------------------------------------------------"
#define IMAGENET_IMAGES 1281167.0

static void print_devices(int n_workers, FILE *file)
{
    if (n_workers == 1) {
        (void)fprintf(file, "Devices:     ['/cpu:0']\n");
        return;
    }
    for (int i = 0; i < n_workers; i++) {
        (void)fprintf(file, "%s'job:worker/replica:0/task%d/cpu:0'",
                      i == 0 ? "Devices:     [" : ", ", i);
    }
    (void)fprintf(file, "]\n");
}

static const char *dataset_name(const struct training_result *result)
{
    const char *dir = result->plan->options.data_dir;
    const char *slash = dir != NULL ? strrchr(dir, '/') : NULL;
    if (dir != NULL) {
        return slash != NULL && slash[1] != '\0' ? slash + 1 : dir;
    }
    bool is_coloured = weir_model_spec_input(result->task->spec).c == 3;
    return is_coloured ? "imagenet (synthetic)" : "random (synthetic)";
}

static bool is_update(const struct training_plan *plan, const char *name)
{
    return strcmp(plan->options.variable_update, name) == 0;
}

void training_print_header(const struct training_result *result, FILE *file)
{
    const struct training_plan *plan = result->plan;
    const struct training_options *o = &plan->options;
    double n_images = o->data_dir != NULL ? (double)result->task->order.n_samples : IMAGENET_IMAGES;
    bool is_single = is_update(plan, "distributed_all_reduce");
    (void)fprintf(file, "Model:       %s\n", plan->model.name);
    (void)fprintf(file, "Dataset:     %s\n", dataset_name(result));
    (void)fprintf(file, "Mode:        %s\n", o->is_forward_only ? "forward-only" : "training");
    (void)fprintf(file, "SingleSess:  %s\n", is_single ? "True" : "False");
    (void)fprintf(file, "Batch size:  %.0f global\n", result->global_batch);
    (void)fprintf(file, "             %.0f per device\n", result->global_batch / plan->n_workers);
    (void)fprintf(file, "Num batches: %lld\n", (long long)o->num_batches);
    (void)fprintf(file, "Num epochs:  %.2f\n",
                  (double)o->num_batches * result->global_batch / n_images);
    print_devices(plan->n_workers, file);
    (void)fprintf(file, "NUMA bind:   False\n");
    (void)fprintf(file, "Data format: %s\n",
                  strcmp(o->backend, "reference") == 0 ? "NCHW" : "NHWC");
    (void)fprintf(file, "Optimizer:   %s\n", o->optimizer);
    (void)fprintf(file, "Variables:   %s\n", o->variable_update);
    if (is_update(plan, "replicated") || is_single || is_update(plan, "collective_all_reduce")) {
        (void)fprintf(file, "AllReduce:   %s\n", o->all_reduce_spec);
    }
    if (plan->n_workers + plan->n_servers > 1) {
        (void)fprintf(file, "Sync:        %s\n",
                      plan->exchange == TRAINING_INDEPENDENT ? "False" : "True");
    }
    (void)fprintf(file, "==========\n");
    (void)fflush(file);
}

void training_print_titles(FILE *file)
{
    (void)fprintf(file, "Done warm up\nStep\tImg/sec\ttotal_loss\n");
    (void)fflush(file);
}

void training_print_step(size_t step, const struct training_timing *timing, double scale,
                         double loss, FILE *file)
{
    (void)fprintf(file, "%zu\timages/sec: %.1f +/- %.1f (jitter = %.1f)\t%.3f\n", step,
                  scale * timing->mean, scale * timing->uncertainty, scale * timing->jitter, loss);
    (void)fflush(file);
}

/** Alone, a step would have been faster: how much of its speed is left. */
static double efficiency_of(const struct training_result *result)
{
    const struct training_step_ms ms =
        training_step_ms_of(result->times, result->n_times, result->scratch);
    return 1e3 * result->alone_step_s / ms.mean;
}

void training_print_total(const struct training_result *result, FILE *file)
{
    (void)fprintf(file, RULE "\ntotal images/sec: %.2f\n" RULE "\n", result->total);
    if (result->link_bytes_s > 0) {
        const struct training_options *o = &result->plan->options;
        (void)fprintf(file,
                      "emulated: %s on %lld Gbit/s Ethernet, communication/computation = %.3f: "
                      "links of %.2f Gbit/s here\n"
                      "efficiency: %.1f %% of independent\n",
                      o->accelerator, (long long)o->emulate_fabric, result->ratio,
                      result->link_bytes_s * 8 / 1e9, 100 * efficiency_of(result));
    }
    (void)fflush(file);
}

static json_t *plan_json(const struct training_result *result)
{
    const struct training_plan *plan = result->plan;
    const struct training_options *o = &plan->options;
    return json_pack(
        "{s:s,s:s,s:s,s:s,s:I,s:I,s:i,s:i,s:i,s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:I,s:I}", "model",
        plan->model.name, "built_as", plan->config.model.name, "dataset", dataset_name(result),
        "mode", o->is_forward_only ? "forward-only" : "training", "batch_size",
        (json_int_t)(result->global_batch / plan->n_workers), "global_batch_size",
        (json_int_t)result->global_batch, "workers", plan->n_workers, "parameter_servers",
        plan->n_servers, "threads", (int)result->task->n_threads, "variable_update",
        o->variable_update, "all_reduce_spec", o->all_reduce_spec, "transport", result->transport,
        "optimizer", o->optimizer, "precision", o->uses_bf16 ? "bf16" : "f32", "backend",
        o->backend, "convolution", o->convolution, "num_batches", (json_int_t)o->num_batches,
        "num_warmup_batches", (json_int_t)o->num_warmup_batches);
}

static json_t *numbers_json(const struct training_result *result)
{
    const struct training_timing timing = training_timing_of(
        result->global_batch / result->scale, result->times, result->n_times, result->scratch);
    const struct training_step_ms ms =
        training_step_ms_of(result->times, result->n_times, result->scratch);
    const double scale = result->scale;
    double needed = result->step_flop_per_image * result->total;
    return json_pack(
        "{s:f,s:f,s:f,s:f,s:f,s:{s:f,s:f,s:f,s:f,s:f,s:f},s:I,s:I,s:f,s:f,s:I,s:I,s:f,s:f}",
        "images_per_second", result->total, "images_per_second_mean", scale * timing.mean,
        "images_per_second_stddev", scale * timing.stddev, "images_per_second_uncertainty",
        scale * timing.uncertainty, "images_per_second_jitter", scale * timing.jitter, "step_ms",
        "mean", ms.mean, "p50", ms.p50, "p90", ms.p90, "p99", ms.p99, "min", ms.least, "max",
        ms.most, "flop_per_image", (json_int_t)result->flop_per_image, "step_flop_per_image",
        (json_int_t)result->step_flop_per_image, "peak_gflop_s", result->peak_flops / 1e9,
        "peak_fraction", result->peak_flops > 0 ? needed / result->peak_flops : 0, "peak_rss_bytes",
        (json_int_t)result->peak_rss_bytes, "total_rss_bytes", (json_int_t)result->total_rss_bytes,
        "page_faults_per_step", result->page_faults / (double)result->n_times, "cpu_ms_per_step",
        1e3 * result->cpu_s / (double)result->n_times);
}

json_t *training_result_json(const struct training_result *result)
{
    json_t *all = plan_json(result), *numbers = numbers_json(result);
    if (all == NULL || numbers == NULL || json_object_update(all, numbers) != 0 ||
        json_object_set_new(all, "loss", json_real(result->loss)) != 0) {
        json_decref(all);
        json_decref(numbers);
        return NULL;
    }
    json_decref(numbers);
    if (result->link_bytes_s > 0) {
        const struct training_options *o = &result->plan->options;
        json_t *fabric = json_pack(
            "{s:I,s:s,s:f,s:f,s:f,s:f}", "gbit_s", (json_int_t)o->emulate_fabric, "accelerator",
            o->accelerator, "ratio", result->ratio, "link_gbit_s", result->link_bytes_s * 8 / 1e9,
            "independent_step_ms", 1e3 * result->alone_step_s, "efficiency", efficiency_of(result));
        (void)json_object_set_new(all, "emulated_fabric", fabric);
    }
    return all;
}
