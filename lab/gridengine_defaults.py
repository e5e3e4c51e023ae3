"""Attributes that Grid Engine wants spelled out, though almost all have their default value."""

_NO_QUEUE_ATTRIBUTES = (
    *("load_thresholds", "suspend_thresholds", "ckpt_list", "owner_list", "complex_values"),
    *("user_lists", "xuser_lists", "projects", "xprojects", "subordinate_list", "calendar"),
    *("prolog", "epilog", "starter_method"),
    *("suspend_method", "resume_method", "terminate_method"),
)
_UNLIMITED = ("rt", "cpu", "fsize", "data", "stack", "core", "rss", "vmem")

# queue_conf(5). Not the default: no load threshold (it would close the queue on a busy host), and
# scripts are run by the interpreter in their first line.
QUEUE = {
    "seq_no": "0",
    "nsuspend": "1",
    "suspend_interval": "00:05:00",
    "priority": "0",
    "min_cpu_interval": "00:05:00",
    "processors": "UNDEFINED",
    "qtype": "BATCH INTERACTIVE",
    "rerun": "FALSE",
    "tmpdir": "/tmp",
    "shell": "/bin/bash",
    "shell_start_mode": "unix_behavior",
    "notify": "00:00:60",
    "initial_state": "default",
    **dict.fromkeys(_NO_QUEUE_ATTRIBUTES, "NONE"),
    **{f"{kind}_{name}": "INFINITY" for name in _UNLIMITED for kind in "sh"},
}

# sge_conf(5). Not the default: nodes report every 2 s, and are given up after 10 s of silence;
# the accounting file is written at once.
CONFIGURATION = {
    "mailer": "/bin/true",
    "xterm": "/bin/false",
    "shell_start_mode": "unix_behavior",
    "login_shells": "bash,sh",
    "min_uid": "1000",
    "min_gid": "1000",
    "enforce_project": "false",
    "enforce_user": "auto",
    "load_report_time": "00:00:02",
    "max_unheard": "00:00:10",
    "reschedule_unknown": "00:00:00",
    "loglevel": "log_info",
    "administrator_mail": "none",
    "reporting_params": "accounting=true reporting=false flush_time=00:00:01 joblog=false "
    "sharelog=00:00:00",
    "finished_jobs": "100",
    "gid_range": "65400-65500",
    "max_aj_instances": "2000",
    "max_aj_tasks": "75000",
    "max_u_jobs": "0",
    "max_jobs": "0",
    "auto_user_delete_time": "0",
    **{
        f"{name}_{end}": "builtin"
        for name in ("qlogin", "rlogin", "rsh")
        for end in ("command", "daemon")
    },
}

# sched_conf(5). Not the default: jobs are looked at every second and as soon as anything changes.
SCHEDULING = {
    "algorithm": "default",
    "schedule_interval": "0:0:1",
    "maxujobs": "0",
    "queue_sort_method": "0",
    "job_load_adjustments": "NONE",
    "load_adjustment_decay_time": "0:0:0",
    "load_formula": "np_load_avg",
    "schedd_job_info": "false",
    "flush_submit_sec": "1",
    "flush_finish_sec": "1",
    "params": "none",
    "reprioritize_interval": "0:0:0",
    "halftime": "168",
    "usage_weight_list": "cpu=1.000000 mem=0.000000 io=0.000000",
    "compensation_factor": "5.000000",
    "weight_user": "0.250000",
    "weight_project": "0.250000",
    "weight_department": "0.250000",
    "weight_job": "0.250000",
    "weight_tickets_functional": "0",
    "weight_tickets_share": "0",
    "share_override_tickets": "TRUE",
    "share_functional_shares": "TRUE",
    "max_functional_jobs_to_schedule": "200",
    "report_pjob_tickets": "TRUE",
    "max_pending_tasks_per_job": "50",
    "halflife_decay_list": "none",
    "policy_hierarchy": "OFS",
    "weight_ticket": "0.010000",
    "weight_waiting_time": "0.000000",
    "weight_deadline": "3600000.000000",
    "weight_urgency": "0.100000",
    "weight_priority": "1.000000",
    "max_reservation": "0",
    "default_duration": "INFINITY",
}
