/** The functions of all routes, by file: rows name each (routes_*.c). */
#ifndef WEIR_API_FUNCTIONS_H
#define WEIR_API_FUNCTIONS_H

#include "base/status.h"

struct api_call;
struct weir_txn;

/** Declares a route's function. */
#define API_FN(name)                                                                               \
    weir_status name(struct api_call *call, struct weir_txn *txn, struct weir_error *err)

/* alert.c */
API_FN(api_alert_list);
API_FN(api_alert_get);
API_FN(api_alert_acknowledge);
API_FN(api_alert_resolve);
API_FN(api_rule_list);
API_FN(api_rule_get);
API_FN(api_rule_put);
API_FN(api_rule_delete);
API_FN(api_silence_create);
API_FN(api_silence_end);
API_FN(api_receiver_list);
API_FN(api_receiver_get);
API_FN(api_receiver_put);
API_FN(api_receiver_delete);
API_FN(api_receiver_test);

/* artifact.c */
API_FN(api_artifact_list);
API_FN(api_artifact_get);
API_FN(api_artifact_put);
API_FN(api_artifact_delete);
API_FN(api_artifact_upload_list);
API_FN(api_artifact_upload_begin);
API_FN(api_artifact_upload_part);
API_FN(api_artifact_upload_end);
API_FN(api_artifact_upload_delete);

/* audit_routes.c */
API_FN(api_audit_list);
API_FN(api_audit_verify);

/* auth.c */
API_FN(api_session_get);
API_FN(api_session_delete);
API_FN(api_session_link);

/* blob.c */
API_FN(api_blobs_missing);
API_FN(api_blob_put);
API_FN(api_blob_get);

/* board.c */
API_FN(api_board_list);
API_FN(api_board_put);

/* dataset.c */
API_FN(api_dataset_create);
API_FN(api_dataset_file_put);
API_FN(api_dataset_file_delete);
API_FN(api_dataset_class_delete);
API_FN(api_dataset_delete);
API_FN(api_dataset_version_create);
API_FN(api_dataset_freeze_get);
API_FN(api_dataset_versions);

/* card.c */
API_FN(api_model_card);

/* decision.c */
API_FN(api_decision_list);
API_FN(api_decisions_put);
API_FN(api_decision_image);
API_FN(api_decisions_summary);
API_FN(api_health_report);

/* deployment.c */
API_FN(api_deploy_list);
API_FN(api_deploy_get);
API_FN(api_deploy_put);
API_FN(api_deploy_delete);
API_FN(api_deploy_desired);
API_FN(api_deploy_report);

/* deployment_figures.c */
API_FN(api_deploy_figures);
API_FN(api_deploy_disagreements);
API_FN(api_comparison_put);
API_FN(api_comparison_get);
API_FN(api_disagreement_list);
API_FN(api_ion_comparison);
API_FN(api_ion_disagreements);

/* device.c */
API_FN(api_device_list);

/* drift.c */
API_FN(api_ion_drift);

/* event.c */
API_FN(api_event_list);
API_FN(api_stream);

/* experiment.c */
API_FN(api_experiment_list);
API_FN(api_experiment_get);
API_FN(api_experiment_create);
API_FN(api_experiment_update);
API_FN(api_experiment_delete);
API_FN(api_experiment_restore);

/* feedback.c */
API_FN(api_kpi_add);
API_FN(api_kpi_list);
API_FN(api_feedback_give);
API_FN(api_ion_health);

/* health.c */
API_FN(api_health_summary);
API_FN(api_node_list);

/* ion.c */
API_FN(api_ion_list);
API_FN(api_ion_get);
API_FN(api_ion_delete);
API_FN(api_ion_trigger);
API_FN(api_ion_run);
API_FN(api_ion_promote);
API_FN(api_ion_approve);
API_FN(api_ion_reject);
API_FN(api_ion_rollback);
API_FN(api_ion_pause);
API_FN(api_ion_resume);
API_FN(api_ion_set_model);
API_FN(api_ion_candidates);
API_FN(api_policy_decisions);
API_FN(api_deployment_get);
API_FN(api_threshold_put);

/* ion_apply.c */
API_FN(api_ion_apply);

/* job.c */
API_FN(api_job_create);
API_FN(api_job_cancel);
API_FN(api_job_delete);
API_FN(api_job_tasks);
API_FN(api_task_log_get);
API_FN(api_task_log_append);
API_FN(api_task_status);
API_FN(api_node_put);
API_FN(api_node_desired);

/* job_again.c */
API_FN(api_job_restart);
API_FN(api_job_resume);

/* join.c */
API_FN(api_node_join_create);
API_FN(api_node_join);

/* kind.c */
API_FN(api_kind_list);

/* label.c */
API_FN(api_model_update);
API_FN(api_model_version_update);
API_FN(api_model_get);

/* login.c */
API_FN(api_login_page);
API_FN(api_login_begin);
API_FN(api_login);
API_FN(api_login_form);
API_FN(api_login_back);
/* login_password.c */
API_FN(api_login_password);

/* member.c */
API_FN(api_members_get);
API_FN(api_member_put);
API_FN(api_member_delete);

/* metrics.c */
API_FN(api_prometheus);

/* mlflow.c */
API_FN(api_mlflow_version);

/* model.c */
API_FN(api_alias_list);
API_FN(api_alias_put);
API_FN(api_alias_delete);
API_FN(api_model_versions);
API_FN(api_model_version_get);
API_FN(api_model_register);
API_FN(api_model_list);
API_FN(api_model_delete);
API_FN(api_model_version_delete);

/* node.c */
API_FN(api_node_get);
API_FN(api_node_update);
API_FN(api_node_leave);

/* person.c */
API_FN(api_person_forget);

/* reservation.c */
API_FN(api_reservation_create);
API_FN(api_reservation_delete);

/* queue.c */
API_FN(api_queue_list);
API_FN(api_queue_get);
API_FN(api_queue_put);
API_FN(api_queue_delete);
API_FN(api_past_rule_get);
API_FN(api_past_rule_put);
API_FN(api_what_if);
API_FN(api_job_explain);
API_FN(api_job_hold);
API_FN(api_job_requeue);
API_FN(api_job_update);
API_FN(api_job_release); /**< Also what resume does to a job that is held. */

/* records.c */
API_FN(api_health);
API_FN(api_openapi_get);
API_FN(api_list);
API_FN(api_list_numbered); /**< Records with `seq`: newest first, or from `after` on. */
API_FN(api_get);
API_FN(api_delete);

/* replica.c */
API_FN(api_replica_put);
API_FN(api_replicas_get);

/* results.c */
API_FN(api_results_list);
API_FN(api_results_get);
API_FN(api_results_put);

/* role.c, role_change.c */
API_FN(api_role_list);
API_FN(api_role_get);
API_FN(api_role_create);
API_FN(api_role_put);
API_FN(api_role_delete);

/* run.c */
API_FN(api_run_create);
API_FN(api_run_list);
API_FN(api_run_get);
API_FN(api_run_update);

/* run_groups.c */
API_FN(api_run_groups);

/* lineage.c */
API_FN(api_decision_lineage);
API_FN(api_version_lineage);
API_FN(api_version_decisions);
API_FN(api_dataset_lineage);
API_FN(api_dataset_decisions);

/* run_lineage.c */
API_FN(api_run_lineage);

/* run_summary.c */
API_FN(api_run_summary);

/* secret.c */
API_FN(api_secret_list);
API_FN(api_secret_put);
API_FN(api_secret_delete);

/* service.c */
API_FN(api_service_list);
API_FN(api_service_put);
API_FN(api_service_get);
API_FN(api_service_delete);
API_FN(api_service_start);
API_FN(api_service_stop);
API_FN(api_service_ticket);

/* service_visit.c */
API_FN(api_service_enter);

/* snapshot.c */
API_FN(api_snapshot_take);
API_FN(api_snapshot_import);
API_FN(api_snapshot_get);
API_FN(api_snapshot_export);
API_FN(api_snapshot_state);
API_FN(api_snapshot_replay);
API_FN(api_snapshot_delete);
API_FN(api_ion_revisions);

/* statistic.c */
API_FN(api_statistics_add);
API_FN(api_statistics_list);
API_FN(api_ion_tell);

/* store.c */
API_FN(api_store_usage);
API_FN(api_store_sweep);
API_FN(api_retention_get);
API_FN(api_retention_put);

/* project_retention.c */
API_FN(api_project_retention_get);
API_FN(api_project_retention_put);
API_FN(api_project_retention_preview);
API_FN(api_retention_bounds_get);
API_FN(api_retention_bounds_put);

/* sweep.c */
API_FN(api_sweep_create);
API_FN(api_sweep_trials);
API_FN(api_sweep_pause);
API_FN(api_sweep_resume);
API_FN(api_sweep_stop);
API_FN(api_sweep_delete);

/* task_use.c */
API_FN(api_node_use);

/* tenant.c */
API_FN(api_project_members);
API_FN(api_project_grant);
API_FN(api_project_revoke);
API_FN(api_group_create);
API_FN(api_group_delete);
API_FN(api_group_members);
API_FN(api_group_add);
API_FN(api_group_remove);
API_FN(api_user_password);

/* top.c */
API_FN(api_top_jobs);

/* top.c */
API_FN(api_top_jobs);

/* track.c */
API_FN(api_metrics_get);
API_FN(api_metrics_put);

/* usage.c */
API_FN(api_usage);
API_FN(api_usage_queues);

/* user.c */
API_FN(api_token_create);
API_FN(api_token_revoke);
API_FN(api_user_create);
API_FN(api_user_update);
API_FN(api_user_delete);
API_FN(api_session_list);
API_FN(api_session_end);
API_FN(api_project_create);
API_FN(api_token_list);

/* visit.c */
API_FN(api_visit_create);
API_FN(api_visit_list);
API_FN(api_visit_stream);
API_FN(api_visit_place);

/* window.c */
API_FN(api_baseline_put);
API_FN(api_baseline_get);
API_FN(api_window_test);

#endif
