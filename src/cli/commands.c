/** The list of commands, in the order help shows them. */
#include "cli/command.h"

// clang-format off
#define COMMANDS(X) \
    X(cli_server) \
    X(cli_server_stop) \
    X(cli_backup) \
    X(cli_restore) \
    X(cli_demo) \
    X(cli_doctor) \
    X(cli_train) \
    X(cli_evaluate) \
    X(cli_dataset) \
    X(cli_apply) \
    X(cli_diff) \
    X(cli_edit) \
    X(cli_get) \
    X(cli_wait_command) \
    X(cli_rollout_status) \
    X(cli_describe) \
    X(cli_explain) \
    X(cli_lineage_decision) \
    X(cli_lineage_dataset) \
    X(cli_lineage_version) \
    X(cli_runs_compare) \
    X(cli_run_set) \
    X(cli_experiment_set) \
    X(cli_artifact_list) \
    X(cli_artifact_get) \
    X(cli_artifact_put) \
    X(cli_model_push) \
    X(cli_model_get) \
    X(cli_model_card) \
    X(cli_model_export) \
    X(cli_model_alias) \
    X(cli_model_set) \
    X(cli_model_delete) \
    X(cli_deploy) \
    X(cli_scale) \
    X(cli_undeploy) \
    X(cli_predict) \
    X(cli_batch) \
    X(cli_approve) \
    X(cli_reject) \
    X(cli_rollback) \
    X(cli_ion_set_model) \
    X(cli_ion_pause) \
    X(cli_ion_resume) \
    X(cli_trigger) \
    X(cli_ion_run) \
    X(cli_ion_promote) \
    X(cli_health) \
    X(cli_model_baseline) \
    X(cli_kpi) \
    X(cli_feedback) \
    X(cli_statistics) \
    X(cli_member) \
    X(cli_snapshot_create) \
    X(cli_snapshot_export) \
    X(cli_snapshot_import) \
    X(cli_snapshot_replay) \
    X(cli_snapshot_delete) \
    X(cli_logs) \
    X(cli_alert_ack) \
    X(cli_alert_resolve) \
    X(cli_alert_silence) \
    X(cli_alert_unsilence) \
    X(cli_alert_rule) \
    X(cli_alert_receiver) \
    X(cli_alert_test) \
    X(cli_delete) \
    X(cli_job_submit) \
    X(cli_job_run) \
    X(cli_job_results) \
    X(cli_service_run) \
    X(cli_service_list) \
    X(cli_service_open) \
    X(cli_service_start) \
    X(cli_service_stop) \
    X(cli_service_delete) \
    X(cli_notebook_start) \
    X(cli_notebook_list) \
    X(cli_notebook_open) \
    X(cli_notebook_stop) \
    X(cli_tensorboard) \
    X(cli_job_shell) \
    X(cli_job_exec) \
    X(cli_job_cp) \
    X(cli_job_forward) \
    X(cli_job_top) \
    X(cli_job_cancel) \
    X(cli_job_restart) \
    X(cli_job_resume) \
    X(cli_job_hold) \
    X(cli_job_requeue) \
    X(cli_job_priority) \
    X(cli_sweep_run) \
    X(cli_sweep_list) \
    X(cli_sweep_get) \
    X(cli_sweep_pause) \
    X(cli_sweep_resume) \
    X(cli_sweep_stop) \
    X(cli_sweep_delete) \
    X(cli_queue_create) \
    X(cli_queue_set) \
    X(cli_queue_delete) \
    X(cli_queue_list) \
    X(cli_secret) \
    X(cli_usage) \
    X(cli_top) \
    X(cli_login) \
    X(cli_logout) \
    X(cli_context) \
    X(cli_whoami) \
    X(cli_project) \
    X(cli_role) \
    X(cli_group) \
    X(cli_user) \
    X(cli_token) \
    X(cli_session) \
    X(cli_store) \
    X(cli_person_forget) \
    X(cli_audit_verify) \
    X(cli_audit_export) \
    X(cli_node_drain) \
    X(cli_node_resume) \
    X(cli_node_label) \
    X(cli_node_taint) \
    X(cli_node_token) \
    X(cli_node_join) \
    X(cli_node_leave) \
    X(cli_agent) \
    X(cli_agent_stop) \
    X(cli_simulate) \
    X(cli_what_if) \
    X(cli_bench) \
    X(cli_completion) \
    X(cli_complete)
// clang-format on

#define DECLARE(command) extern const struct cli_command command;
COMMANDS(DECLARE)

#define ADDRESS(command) &command,
const struct cli_command *const cli_commands[] = {COMMANDS(ADDRESS)};

const size_t cli_n_commands = WEIR_ARRAY_LEN(cli_commands);
