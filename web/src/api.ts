/**
 * The records the server sends, as the dashboard reads them: the page's side of docs/architecture.md and of the record
 * tables in src/{track,job,ion,store}.
 *
 * Conventions
 * - Every time field ends in _ms in its name and is an RFC 3339 string ("2025-11-21T02:00:00.123Z"), or null for never.
 *   A number is read as milliseconds since 1970, because a replica's own records carry that.
 * - A list answers {"items": [...], "next": cursor | null}; `?cursor=<next>` asks for the following page.
 * - A field marked optional may be absent or null: the page then shows nothing for it, never "undefined".
 * - States are words; the page compares and shows them in lower case, an unknown one in a neutral colour.
 */
export type Time = string | number
export type Opt<T> = T | null | undefined

export interface List<T> {
    items: T[]
    next: Opt<string | number>
}

export interface ErrorBody {
    error: { status: string; message: string }
}

/** GET /session */
export interface Session {
    user: string
    role: string // "viewer" may look only
    csrf: string
    version?: Opt<string>
}

// ---------------------------------------------------------------------------------------------------- ions

/** GET /ions, GET /ions/{name}. SSE "ions" carries {name} only: something of it changed. */
export interface Ion {
    name: string
    project: string
    state: string
    revision: number
    created_by?: Opt<string>
    created_ms: Time
    updated_ms?: Opt<Time>
    document?: Opt<unknown> // as it was applied
    health?: Opt<Health>
    pipelines: Pipeline[]
    links: Link[]
}

/** How something is: by the server, which goes by the alerts about it. */
export interface Health {
    status: string // ok, waiting (for a first model), degraded, down
    reason?: Opt<string>
    since?: Opt<Time>
}

/** GET /health/summary */
export interface HealthSummary extends Health {
    reasons: (Health & { kind: string; severity: string; subject?: Opt<string>; alert: string })[]
}

/** GET /projects */
export interface Project {
    name: string
    description?: Opt<string>
    created_ms?: Opt<Time>
}

/** GET /ions/{name}/policy-decisions, newest first: what the policy of a link said of a version, and why. */
export interface PolicyDecision {
    id: string
    link: string // "from:to"
    version: number
    policy: string
    rule?: Opt<string>
    verdict: string // promote, wait, skip, reject, rollback
    actor?: Opt<string>
    note?: Opt<string>
    time_ms?: Opt<Time>
}

/** GET /store/usage: what grows in the state folder, and how full its disk is. */
export interface Usage {
    kind: string
    what: string
    rule?: Opt<string>
    unit?: Opt<string>
    n?: Opt<number>
    n_needed?: Opt<number>
    used_bytes?: Opt<number>
    limit?: Opt<string>
    oldest_ms?: Opt<Time>
    next?: Opt<string>
}

export interface StoreUsage {
    items: Usage[]
    total_bytes: number
    disk_bytes: number
    disk_free_bytes: number
}

/** GET /ions/{name}/members */
export interface Member {
    id: string
    person: string
    list: string // allow, deny
    actor?: Opt<string>
    time_ms?: Opt<Time>
}

export interface Pipeline {
    name: string
    type: string // "training" | "prediction"
    state: string // training: IDLE, TRAINING; prediction: WAITING, DEPLOYING, SERVING, DEPLOY_FAILED
    state_reason?: Opt<string> // DEPLOY_FAILED: the replica's sentence
    served_revision?: Opt<number> // the deployment that frames are decided by; 0: none
    job?: Opt<string>
    run?: Opt<string>
    cause?: Opt<string> // why the running training runs
    pending_cause?: Opt<string> // a further training is wanted: why
    next_fire_ms?: Opt<Time>
    dataset?: Opt<string> // of a prediction: its gallery
    impostors?: Opt<string> // dataset of people who belong to nobody: sets the threshold
    model?: Opt<string>
    workers?: Opt<number>
    parameter_servers?: Opt<number>
    schedule?: Opt<string>
    new_data?: Opt<boolean> // trains whenever its dataset gets a new version
    replicas?: Opt<number>
    deployment?: Opt<Deployment>
    threshold?: Opt<Threshold> // of a prediction; null: no replica has set one yet
}

/** How a replica set the threshold of what it serves, and what that costs. */
export interface Threshold {
    threshold: number
    threshold_low?: Opt<number> // 90 % interval; null: not known
    threshold_high?: Opt<number>
    deny_threshold?: Opt<number> // of people on the deny list; null: the threshold of all
    rule: string // impostors, gallery, both, blind
    scores?: Opt<number>
    people?: Opt<number>
    asked_rate?: Opt<number>
    expected_rate?: Opt<number> // share of impostors at or above it; null: not known
    refused_share?: Opt<number> // share of the gallery's own photos below it
    model_version?: Opt<number>
    gallery_version?: Opt<number>
    time_ms?: Opt<Time>
}

export interface Deployment {
    revision: number
    model?: Opt<{ name: string; version: number }>
    gallery?: Opt<{ dataset: string; version: number }>
}

export interface Link {
    from: string
    to: string
    policy: string
    serving_version?: Opt<number> // what replicas serve
    wanted_version?: Opt<number> // what the link has chosen
    deployment_state?: Opt<string> // of that one: DEPLOYING, SERVING, DEPLOY_FAILED
    serving_model?: Opt<string>
    pending_versions?: Opt<number[]>
}

/** GET /ions/{name}/candidates: a model version offered to a link. */
export interface Candidate {
    id: string
    link?: Opt<string> // "from:to", sent back with approve and reject
    link_from: string
    link_to: string
    model: string
    version: number
    state: string // PENDING_REVIEW, APPROVED, DEPLOYING, SERVING, DEPLOY_FAILED, RETIRED, REJECTED, ROLLED_BACK
    created_ms: Time
    metrics?: Opt<Metrics>
}

// ------------------------------------------------------------------------------------------------- registry

export type Metrics = Record<string, unknown>

/** GET /models */
export interface Model {
    name: string
    project?: Opt<string>
    description?: Opt<string>
    created_ms?: Opt<Time>
}

/** GET /models/{m}/versions, SSE "models" */
export interface ModelVersion {
    id: string
    blob?: Opt<string> // SHA-256 of the model file, GET /blobs/{sha256}
    model: string
    version: number
    state?: Opt<string> // absent: taken from the candidates
    run?: Opt<string>
    dataset?: Opt<string>
    dataset_version?: Opt<string | number> // 0: unknown
    code_version?: Opt<string>
    parameters?: Opt<Record<string, unknown>>
    metrics?: Opt<Metrics>
    bytes?: Opt<number>
    created_ms: Time
}

/** GET /runs. SSE "runs" carries {id, status} or {id, metrics: MetricPoint[]}. */
export interface Run {
    id: string
    name: string
    project?: Opt<string>
    created_by?: Opt<string>
    job?: Opt<string>
    status: string // RUNNING, FINISHED, FAILED, KILLED
    ion?: Opt<string>
    pipeline?: Opt<string>
    model?: Opt<string> // the architecture that is trained
    registered?: Opt<{ model: string; version: number }> // what came of it, by its name in the registry
    parameters?: Opt<Record<string, unknown>>
    dataset?: Opt<string>
    dataset_version?: Opt<string | number>
    code_version?: Opt<string>
    progress?: Opt<number> // 0..1
    images_per_second?: Opt<number>
    epoch?: Opt<number>
    epochs?: Opt<number>
    loss?: Opt<number> // of the last mini-batches of training
    accuracy?: Opt<number> // likewise
    validation_loss?: Opt<number> // of data that is not trained with
    validation_accuracy?: Opt<number>
    created_ms?: Opt<Time> // when it was handed in
    started_ms?: Opt<Time> // when its job's tasks ran; null: it waits
    finished_ms?: Opt<Time>
}

/** GET /runs/{id}/metrics (all keys; ?key= narrows) */
export interface MetricPoint {
    key: string
    step: number
    value: number | null // null: not a number
    time_ms?: Opt<Time>
}

/** GET /datasets/{name} */
export interface Dataset {
    name: string
    project?: Opt<string>
    kind?: Opt<string> // "folder" or "idx"
    path?: Opt<string>
    is_uploaded?: Opt<boolean>
    created_by?: Opt<string>
    created_ms?: Opt<Time>
}

/** GET /datasets/{name}/versions, newest first */
export interface DatasetVersion {
    id: string
    version: number
    digest?: Opt<string>
    n_files?: Opt<number>
    n_classes?: Opt<number>
    bytes?: Opt<number>
    created_ms?: Opt<Time>
}

// ------------------------------------------------------------------------------------------------ decisions

export type Verdict = 'grant' | 'deny' | 'unknown' | 'error'

/** GET /decisions (newest first), SSE "decisions" */
export interface Decision {
    id: string
    seq?: Opt<number>
    ion: string
    pipeline: string
    replica?: Opt<string>
    camera: string
    frame: number
    time_ms: Time
    verdict: Verdict
    person?: Opt<string>
    score?: Opt<number>
    threshold?: Opt<number>
    model_version?: Opt<number>
    gallery_version?: Opt<number>
    list_revision?: Opt<number>
    latency_us?: Opt<number>
    durable_us?: Opt<number>
    brightness?: Opt<number>
    error?: Opt<string>
    image?: Opt<string> // sha256; null: no picture was kept
}

/** GET /decisions/summary?ion=&since= */
export interface DecisionSummary {
    decisions: number
    verdicts: Partial<Record<Verdict, number>>
    latency_ms?: Opt<{ p50?: Opt<number>; p90?: Opt<number>; p99?: Opt<number> }>
    from_ms?: Opt<Time> // from when on the counts are complete; null: there are none
    per_second?: Opt<number> // since then
    buckets?: Opt<{ time_ms: Time; grant: number; deny: number; unknown: number; error: number }[]>
}

// --------------------------------------------------------------------------------------- jobs, nodes, events

/** GET /jobs, SSE "jobs" */
export interface Job {
    id: string
    name: string
    kind: string // "train" | "predict" | "command"
    state: string // PENDING, STARTING, RUNNING, RESTARTING, STOPPING, SUCCEEDED, FAILED, CANCELLED
    project?: Opt<string>
    ion?: Opt<string>
    pipeline?: Opt<string>
    run?: Opt<string>
    reason?: Opt<string> // why it waits, restarts or failed: one sentence for people
    expected_start_ms?: Opt<Time> // while it waits: when it may start, if jobs end as expected
    n_restarts?: Opt<number>
    created_by?: Opt<string>
    created_ms?: Opt<Time>
    started_ms?: Opt<Time>
    finished_ms?: Opt<Time>
}

/** GET /jobs/{id}/tasks */
export interface Task {
    id: string
    job: string
    role: string // "worker" | "parameter_server" | "replica" | "command"
    rank: number
    attempt?: Opt<number>
    node?: Opt<string>
    state: string // WAITING, STARTING, RUNNING, STOPPING, EXITED, LOST
    exit_code?: Opt<number> // -1: none
    signal?: Opt<number> // 0: none
    message?: Opt<string>
}

/** GET /nodes; SSE "nodes" says only that something changed */
export interface Node {
    name: string
    cpu_slots?: Opt<number>
    memory_bytes?: Opt<number>
    n_accelerators?: Opt<number>
    inventory?: Opt<Record<string, unknown>> // as the agent reported it; "accelerators": Accelerator[] is drawn
    agent_version?: Opt<string>
    is_draining?: Opt<boolean>
    state?: Opt<string> // ready, silent, lost: by the server's bounds
    last_seen_ms?: Opt<Time>
}

export interface Accelerator {
    index?: Opt<number>
    name?: Opt<string>
    memory_bytes?: Opt<number>
    used_bytes?: Opt<number>
}

/** GET /events (newest first), SSE "events" */
export interface WeirEvent {
    seq: number
    time_ms: Time
    topic?: Opt<string>
    severity: string // info, warning, error
    kind: string
    subject?: Opt<string> // "ion/building-security"
    actor?: Opt<string>
    message: string
}

/** GET /alerts. SSE "alerts" carries the record, or only that something changed. */
export interface Alert {
    id: string
    severity?: Opt<string>
    kind: string
    subject?: Opt<string>
    message: string
    state: string // open, acknowledged, resolved
    count?: Opt<number>
    raised_ms: Time
    last_ms?: Opt<Time>
    data?: Opt<unknown>
    acknowledged_by?: Opt<string>
    acknowledged_ms?: Opt<Time>
    resolved_ms?: Opt<Time>
}
